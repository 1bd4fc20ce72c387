import { expect, test } from 'vitest'
import { printedParts } from '../src/core/text/printed'

test('what a tool printed is one text, whatever is in it', () => {
  for (const text of ['a.py:1: x\nb.py:2: *y*', '', 'see\n```\ncode\n```', '    ```\nindented code', '``\nno fence']) {
    expect(printedParts(text)).toEqual([{ text, fenced: false }])
  }
})

test('fences that an agent puts around it are not part of it', () => {
  const fenced = '```console\n$ ls\na  b\n```'
  expect(printedParts(fenced)).toEqual([{ text: fenced, fenced: true }])
  expect(printedParts(`\n${fenced}\nexit 0\n~~~\nmore\n~~~\n`)).toEqual([
    { text: fenced, fenced: true }, { text: 'exit 0', fenced: false }, { text: '~~~\nmore\n~~~', fenced: true },
  ])
  expect(printedParts('````\n```\ninner\n```\n````')).toEqual([{ text: '````\n```\ninner\n```\n````', fenced: true }])
  expect(printedParts('```\nnever closed')).toEqual([{ text: '```\nnever closed', fenced: true }])
})

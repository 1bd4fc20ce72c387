import { expect, test } from 'vitest'
import { PALETTE, colouredLines } from '../src/core/text/ansi'
import { plainOutput } from '../src/core/text/safe_text'

const told = (output: string) => colouredLines(output).map((line) => line.map(({ text, colour, bold }) => [text, colour, bold]))

test('colours of letters are taken over, until they end', () => {
  expect(told('\x1b[1mname\x1b[0m \x1b[32m....\x1b[0m\r\n\x1b[91mred\nstill\x1b[39m not')).toEqual([
    [['name', null, true], [' ', null, false], ['....', 2, false]],
    [['red', 9, false]],
    [['still', 9, false], [' not', null, false]],
  ])
  expect(told('\x1b[38;5;196mx\x1b[38;2;0;255;0my\x1b[38:5:4mz')).toEqual([[['x', 1, false], ['y', 2, false], ['z', 4, false]]])
})

test('nothing can be hidden: no ground, no concealment, and every colour can be read', () => {
  expect(told('\x1b[30;40ma\x1b[8mb\x1b[38;2;20;24;29mc\x1b[48;5;1md')).toEqual([[['a', 0, false], ['b', 0, false], ['c', expect.any(Number), false], ['d', expect.any(Number), false]]])
  const light = (hex: string) => {
    const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  for (const colour of PALETTE) expect((light(colour) + 0.05) / (light('#14181d') + 0.05)).toBeGreaterThan(4.5)
  expect(told('a\u202eb\x1b]0;title\x07')[0]?.[0]?.[0]).toContain('⟨U+202E⟩')
})

test('the words are those of the plain tail', () => {
  for (const output of ['10 %\r20 %\r\nx', 'a\r\r\nb\rc\r\n\r\n', '\x1b[2Kone\x1b[1A\ntwo', `a${'\r'.repeat(100_000)}b`, '']) {
    expect(colouredLines(output).map((line) => line.map(({ text }) => text).join('')).join('\n').trimEnd()).toBe(plainOutput(output).trimEnd())
  }
})

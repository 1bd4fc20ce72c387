import { expect, test, vi } from 'vitest'
import { askedRows, diffRows } from '../src/core/changes/diff'

test('a change has its lines, numbered on both sides', () => {
  const file = diffRows({ type: 'diff', path: 'a', oldText: 'one\ntwo\nthree\n', newText: 'one\n2\nthree\n' })
  expect(file.rows).toEqual([
    { sign: ' ', text: 'one', old: 1, new: 1 },
    { sign: '-', text: 'two', old: 2, new: null },
    { sign: '+', text: '2', old: null, new: 2 },
    { sign: ' ', text: 'three', old: 3, new: 3 },
  ])
  expect([file.added, file.removed, file.created]).toEqual([1, 1, false])
})

test('a new file is all additions', () => {
  const file = diffRows({ type: 'diff', path: 'a', newText: 'x\ny\n' })
  expect([file.added, file.removed, file.created]).toEqual([2, 0, true])
})

test('what is too large to compare says so', () => {
  const file = diffRows({ type: 'diff', path: 'a', oldText: 'x\n'.repeat(600_000), newText: 'y\n'.repeat(600_000) })
  expect(file.rows).toHaveLength(1)
})

test('what comes with too many others is compared when somebody asks for it, or there is time again', () => {
  let now = performance.now() + 10_000
  let looks = 0
  // One look at the clock before each comparison, and one behind it: it takes 100 ms.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += looks++ % 2 ? 100 : 0))
  const change = (name: string) => ({ type: 'diff' as const, path: name, oldText: 'one\ntwo\n', newText: `one\n${name}\n` })
  const changes = ['a', 'b', 'c', 'd', 'e', 'f'].map(change)
  const files = changes.map((diff) => diffRows(diff))
  const compared = files.filter(({ large }) => !large).length
  expect(compared).toBe(3)
  const last = files[5]
  expect([last?.large, last?.postponed, last?.rows[0]?.text]).toEqual([true, true, 'not compared yet: 3 lines before, 3 after'])
  const [diff] = changes.slice(5)
  if (diff === undefined) throw new Error('there are six')
  expect(askedRows(diff).rows.map(({ sign }) => sign).join('')).toBe('@--++')
  expect(diffRows(diff).postponed).toBe(true)
  expect(diffRows(diff, true).rows.map(({ sign }) => sign).join('')).toBe(' -+')
  expect(diffRows(diff).postponed).toBe(false)
  now += 10_000
  expect(diffRows(change('g')).postponed).toBe(false)
  clock.mockRestore()
})

test('a patch is drawn as rows, and what is done to the file is said', () => {
  const patch = 'diff --git a/a.py b/b.py\n--- a/a.py\n+++ b/b.py\n@@ -3,2 +3,2 @@ def f():\n keep\n-old\n+new\n'
  const file = diffRows({ type: 'diff', path: 'b.py', newText: '', operation: 'move', oldPath: 'a.py', patch })
  expect([file.added, file.removed, file.note]).toEqual([1, 1, 'moved from a.py'])
  expect(file.rows.map((row) => row.sign).join('')).toBe('@ -+')
  expect(diffRows({ type: 'diff', path: 'b.py', newText: '', operation: 'delete' }).note).toBe('deleted')
})

test('the same content is no change; what is only named is not known to be one', () => {
  const same = diffRows({ type: 'diff', path: 'a', oldText: 'one\n', newText: 'one\n' })
  expect([same.unchanged, same.rows]).toEqual([true, []])
  expect(diffRows({ type: 'diff', path: 'a', oldText: null, newText: '' }).unchanged).toBe(false)
  expect(diffRows({ type: 'diff', path: 'a', oldText: '', newText: '', operation: 'modify' }).unchanged).toBe(false)
})

test('a patch is seen whole: a second file in it, a mode, a part that is not text', () => {
  const mine = 'diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n'
  const hook = 'diff --git a/.git/hooks/x b/.git/hooks/x\nGIT binary patch\nliteral 20\nzcmXX\n--- a/y\n'
  const file = diffRows({ type: 'diff', path: 'a', newText: '', operation: 'modify', patch: mine + hook })
  const shown = file.rows.map((row) => row.text)
  for (const line of ['new mode 100755', ...hook.trim().split('\n')]) expect(shown).toContain(line)
  expect([file.added, file.removed]).toEqual([1, 1])
})

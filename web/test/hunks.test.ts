import { expect, test } from 'vitest'
import { colours, tokenLines, withMark } from '../src/core/text/code_tokens'
import { treeOrder, treeRows } from '../src/core/changes/file_tree'
import type { FileChange } from '../src/core/generated/responses'
import { anchorOf, changedRows, emphasised, fingerprint, hunksOf, pairs, placeOf, rowsBetween, saysMore } from '../src/core/changes/hunks'

function changed(path: string, after: string, ...hunks: [number, number, string[]][]): FileChange {
  return {
    path, source: 'agent', existed: true, diff: '', before: null, after, status: 'modified', oldPath: null, by: ['agent'], turns: ['t'], protected: null,
    oldMode: '100644', newMode: '100644', binary: false, added: 0, removed: 0, oldSize: 0, newSize: 0, revertible: true,
    hunks: hunks.map(([oldStart, newStart, lines], at) => ({ id: `h-${at}`, oldStart, newStart, oldLines: 0, newLines: 0, lines })),
  }
}

const CHANGE = changed('/p/a.py', 'a\nnew\nmore\nz\n', [1, 1, [' a', '-old', '+new', '+more', ' z']])

test('rows have the numbers of both versions, and a note has none', () => {
  const [hunk] = hunksOf(changed('/p/a', '', [4, 7, [' x', '-y', '+z', '\\ No newline at end of file']]))
  expect(hunk?.rows.map((row) => [row.sign, row.old, row.new])).toEqual([[' ', 4, 7], ['-', 5, null], ['+', null, 8], ['@', null, null]])
  expect([hunk?.start, hunk?.end, hunk?.added, hunk?.removed]).toEqual([8, 8, 1, 1])
})

test('what was removed stands beside what was added in its place', () => {
  const [hunk] = hunksOf(CHANGE)
  expect(pairs(hunk?.rows ?? []).map(({ left, right }) => [left?.text, right?.text])).toEqual([['a', 'a'], ['old', 'new'], [undefined, 'more'], ['z', 'z']])
})

test('the part of a line that differs is marked, unless the lines have little in common', () => {
  const [near] = hunksOf(changed('/p/x', '', [1, 1, ['-total = None', '+total = 0']]))
  expect([...emphasised(near?.rows ?? []).values()]).toEqual([[8, 12], [8, 9]])
  const [far] = hunksOf(changed('/p/y', '', [1, 1, ['-import os', '+def f():']]))
  expect(emphasised(far?.rows ?? []).size).toBe(0)
})

test('a hunk is the same one while its lines are, wherever it moves to', () => {
  const [here] = hunksOf(CHANGE)
  const [there] = hunksOf(changed('/p/a.py', '', [40, 52, [' other', '-old', '+new', '+more']]))
  const [another] = hunksOf(changed('/p/a.py', '', [1, 1, [' a', '-old', '+news']]))
  expect(there?.key).toBe(here?.key)
  expect(another?.key).not.toBe(here?.key)
})

test('a file that was viewed is not when it changes again', () => {
  expect(fingerprint(CHANGE)).toBe(fingerprint({ ...CHANGE }))
  expect(fingerprint({ ...CHANGE, newMode: '100755' })).not.toBe(fingerprint(CHANGE))
  const binary = { ...CHANGE, binary: true, hunks: [], newSize: 5 }
  expect(fingerprint({ ...binary, turns: ['t', 'u'] })).not.toBe(fingerprint(binary))
})

test('a comment stays with its code, and is stale when that is gone', () => {
  const [hunk] = hunksOf(CHANGE)
  const place = placeOf(hunk ? changedRows(hunk) : [])
  expect(place).toEqual({ side: 'new', start: 2, end: 3, lines: ['-old', '+new', '+more'] })
  const moved = hunksOf(changed('/p/a.py', '', [9, 11, [' q', '+new', '+more', ' r']]))
  expect(anchorOf(place, moved, null)).toMatchObject({ stale: false, start: 12, end: 13, row: moved[0]?.rows[2] })
  expect(anchorOf(place, [], 'x\nnew\nmore\n')).toEqual({ stale: false, start: 2, end: 3, row: null })
  expect(anchorOf(place, [], 'x\nnew\n')).toEqual({ stale: true, start: 2, end: 3, row: null })
  const removal = placeOf(hunk?.rows.slice(1, 2) ?? [])
  expect(removal).toEqual({ side: 'old', start: 2, end: 2, lines: ['-old'] })
  expect(anchorOf(removal, [], 'old\n').stale).toBe(true)
})

test('lines are chosen by their numbers: the rows are made again when the changes are', () => {
  const [before] = hunksOf(CHANGE)
  const [now] = hunksOf(structuredClone(CHANGE))
  const [rows, earlier] = [now?.rows ?? [], before?.rows ?? []]
  const [first, last] = [earlier[1], rows[3]]
  if (!first || !last) throw new Error('no rows')
  expect(rowsBetween(rows, first, last)).toEqual(rows.slice(1, 4))
  expect(rowsBetween(rows, last, first)).toEqual(rows.slice(1, 4))
})

test('of the same code in two places, the nearer one is meant', () => {
  const twice = hunksOf(changed('/p/b', '', [1, 1, ['+x']], [30, 31, ['+x']]))
  expect(anchorOf({ side: 'new', start: 28, end: 28, lines: ['+x'] }, twice, null).start).toBe(31)
})

test('folders that hold only one other are one row, and a closed one hides its files', () => {
  const paths = ['src/deep/er/a.py', 'src/deep/er/b.py', 'README.md', '/etc/x']
  expect(treeRows(paths).map(({ name, depth, file }) => [name, depth, file])).toEqual([
    ['/etc', 0, null], ['x', 1, 3], ['src/deep/er', 0, null], ['a.py', 1, 0], ['b.py', 1, 1], ['README.md', 0, 2],
  ])
  expect(treeRows(paths, new Set(['src/deep/er/'])).map(({ name }) => name)).toEqual(['/etc', 'x', 'src/deep/er', 'README.md'])
  expect(treeOrder(paths)).toEqual([3, 0, 1, 2])
})

test('names that every object has are names of files and folders like others', () => {
  expect(treeRows(['__proto__/constructor']).map(({ name }) => name)).toEqual(['__proto__', 'constructor'])
})

test('colours are pieces of the text, whatever is in it', () => {
  const code = 'x = "<b>&amp;\'"\ns = """one\n</span>two"""\n'
  const lines = tokenLines(code, 'python')
  expect(lines.map((line) => line.map(({ text }) => text).join('')).join('\n')).toBe(code)
  expect(lines[2]?.[0]?.kind).toContain('string')
})

test('a row has its colours or none, and loses no character to a mark', () => {
  const hunks = hunksOf(CHANGE)
  const rows = [...colours({ ...CHANGE, after: 'a\nother\nmore\nz\n' }, hunks)].map(([row]) => row.text)
  expect(rows).not.toContain('new')
  expect(withMark([{ text: 'abc', kind: 'k' }, { text: 'def', kind: '' }], [2, 4])).toEqual([
    { text: 'ab', kind: 'k' }, { text: 'c', kind: 'k', mark: true }, { text: 'd', kind: '', mark: true }, { text: 'ef', kind: '' },
  ])
})

test('a diff that only says what is said in words is not shown as well', () => {
  const named = (diff: string) => saysMore({ ...CHANGE, hunks: [], diff })
  expect(named('rename from a.py\nrename to b.py\nold mode 100644\nnew mode 100755\n')).toBe(false)
  expect([named('New empty file\n'), named('Deleted folder\n'), named('')]).toEqual([false, false, false])
  expect([named('Not shown: too large for one response\n'), named('rename from a\nrename to b\n-x\n')]).toEqual([true, true])
})

import { expect, test } from 'vitest'
import type { PermissionOption } from '../src/core/generated/facts'
import { askedRows, diffRows } from '../src/core/changes/diff'
import { bothEnds, excerpt, isEmpty, leftWords } from '../src/core/text/excerpt'
import { asShown, contradiction, inOrder } from '../src/core/permissions/permission_options'
import { flagsOf, folded, reasonOf, sourceOf, type Rule } from '../src/core/permissions/rules'
import { commandLine } from '../src/core/text/safe_text'
import raw from './questions.json?raw'
import { longestMatched } from './work'

interface Questions {
  labels: { label: string; kind: string; meaning: string | null }[]
  options: { options: PermissionOption[]; shown: unknown[] }[]
  lines: { lines: string[]; marked: boolean; rows: unknown[] }[]
  long: { text: string; ends: string; whole: string }[]
}
const golden = JSON.parse(raw) as Questions

const option = (kind: string, id = kind, name = kind): PermissionOption => ({ id, name, kind })

test('answers stand in one order whatever the agent offers first; others come last, as they came', () => {
  const kinds = ['odd', 'allow_always', 'allow_once', 'reject_once', 'reject_always', 'stranger']
  expect(inOrder(kinds.map((kind) => option(kind))).map(({ id }) => id)).toEqual(
    ['allow_once', 'allow_always', 'reject_once', 'reject_always', 'odd', 'stranger'],
  )
  const twice = [option('reject_once'), option('allow_once', 'b'), option('allow_once', 'a')]
  expect(inOrder(twice).map(({ id }) => id)).toEqual(['b', 'a', 'reject_once'])
  expect(twice[0]?.id).toBe('reject_once')
})

test('answers and their labels read as on the command line', () => {
  for (const { label, kind, meaning } of golden.labels) expect([label, kind, contradiction(label, kind)]).toEqual([label, kind, meaning])
  for (const { options, shown } of golden.options) expect(asShown(options)).toEqual(shown)
})

test('of a long label no pattern reads more than its beginning', () => {
  const blanks = ' '.repeat(4000)
  for (const name of [`Allow${blanks}x`, `${blanks}Allow`, `Allow${blanks}`, `Allow${'\n'.repeat(4000)}x`, 'a'.repeat(4000)]) {
    expect(longestMatched(() => asShown([option('allow_once', name, name), option('allow_once', 'b', name)]))).toBeLessThan(2001)
  }
})

test('long texts are cut as on the command line, and end with their end', () => {
  for (const { lines, marked, rows } of golden.lines) {
    const mark = (line: string) => (marked ? line.slice(0, 1) : '')
    const parts = excerpt(lines, 5, 3, (line) => (isEmpty(line.slice(mark(line).length)) ? mark(line) : null))
    expect(parts.map((part) => ('left' in part ? { ...part, words: leftWords(part.left) } : part))).toEqual(rows)
  }
  for (const { text, ends, whole } of golden.long) expect([bothEnds(text), bothEnds(text, true)]).toEqual([ends, whole])
})

test('what is no patch, and what is too large to compare, is shown all the same', () => {
  const patch = diffRows({ type: 'diff', path: 'a', newText: '', operation: 'modify', patch: '+evil' })
  expect(patch.rows.map(({ text }) => text)).toEqual(['+evil'])
  const large = askedRows({ type: 'diff', path: 'a', newText: `${'x'.repeat(2_000_000)}\nevil`, oldText: 'gone' })
  expect(large.rows.map(({ sign }) => sign).join('')).toBe('@-++')
  expect(large.rows.at(-1)?.text).toBe('evil')
})

test('a file that is there already is no new one', () => {
  expect(diffRows({ type: 'diff', path: 'a', newText: 'x' }).created).toBe(true)
  expect(diffRows({ type: 'diff', path: 'a', newText: 'x', replaces: 'what cannot be shown' }).created).toBe(false)
  expect(diffRows({ type: 'diff', path: 'a', newText: '', operation: 'add', replaces: '50 lines' }).created).toBe(false)
})

test('a reason names a rule by what it says', () => {
  const rule = { effect: 'allow', operation: 'execute', argv: ['git', 'status'], id: '54f36205ada8', source: 'your answer' }
  const reason = 'your answer 54f36205ada8 allows it'
  expect(reasonOf({ effect: 'allow', reason, rule })).toBe('your “always” answer allows it: running git status')
  const any = { effect: 'allow', operation: 'execute', cwd: 'src/**', id: '54f36205ada8', source: 'your answer' }
  expect(reasonOf({ effect: 'allow', reason, rule: any })).toBe('your “always” answer allows it: running any command in src/**')
  expect(reasonOf({ effect: 'allow', reason: '--yolo allows it', rule: { effect: 'allow', source: '--yolo' } })).toBe('--yolo allows it')
  expect(reasonOf({ effect: 'deny', reason: 'answered' })).toBe('answered')
})

test('rules of the start say where they come from, and --yolo is one of them', () => {
  const yolo = (['read', 'write'] as const).map((operation): Rule => ({ effect: 'allow', operation, anywhere: true, source: '--yolo' }))
  const given: Rule[] = [{ effect: 'deny', path: 'x', source: '/home/ada/rules.json' }, { effect: 'allow', operation: 'write', source: '--write' }, ...yolo]
  expect(flagsOf(given)).toEqual(['--write', '--yolo'])
  expect(folded(given).map((rule) => sourceOf(rule).words)).toEqual(['the file rules.json', 'started with --write', 'started with --yolo'])
  expect(folded([])).toEqual([])
})

test('one word is a line for a shell, and is shown as it is', () => {
  expect(commandLine(['echo SHELL && pwd'])).toBe('echo SHELL && pwd')
  expect(commandLine(['git', 'commit', '-m', 'a b'])).toBe("git commit -m 'a b'")
})

test('a label of a million blanks is read in one go', () => {
  const name = `Allow${' '.repeat(1_000_000)}x`
  const [shown] = asShown([{ id: 'a', name, kind: 'allow_once' }])
  expect(shown?.words).toBe('Allow once')
})

import { expect, test } from 'vitest'
import { completed, completingAt } from '../src/core/completion'
import { diffRows } from '../src/core/changes/diff'
import { answerOf, areDescribed, fieldsOf, problemsOf } from '../src/core/form'
import type { Json } from '../src/core/generated/content'
import { byProject, nameBeside, shownSessions } from '../src/core/session/listing'
import { sentence, table, within } from '../src/core/text/format'
import type { Summary } from '../src/live/api'
import raw from './questions.json?raw'

test('a schema becomes fields, and what was typed an answer', () => {
  const fields = fieldsOf({
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', title: 'Name' },
      age: { type: 'integer', minimum: 0 },
      sure: { type: 'boolean', default: true },
      colour: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
      many: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b', title: 'B' }] } },
      odd: { type: 'object' },
    },
  })
  expect(fields.map((field) => field.kind)).toEqual(['text', 'integer', 'yes', 'one', 'many', 'text'])
  expect(fields[3]?.choices).toEqual([{ value: 'r', label: 'Red' }, { value: 'g', label: 'Green' }])
  expect(answerOf(fields, new Map(Object.entries({ name: 'x', age: '7', many: ['b'] })))).toEqual({ name: 'x', age: 7, sure: true, many: ['b'] })
})

test('what a choice means is kept, for one and for many', () => {
  const described = [{ const: 'A', title: 'Alpha', description: 'the first' }, { const: 'B', title: 'Beta' }]
  const [one, many, plain] = fieldsOf({
    properties: { one: { type: 'string', oneOf: described }, many: { type: 'array', items: { anyOf: described } }, plain: { enum: ['x'] } },
  })
  expect(one?.choices).toEqual([{ value: 'A', label: 'Alpha', description: 'the first' }, { value: 'B', label: 'Beta' }])
  expect(many?.choices).toEqual(one?.choices)
  expect([one, many, plain].map((field) => areDescribed(field?.choices ?? []))).toEqual([true, true, false])
})

test('a field may be named like what every object has', () => {
  const schema = JSON.parse('{"properties":{"constructor":{"type":"array","items":{"enum":["a"]}},"toString":{"format":"valueOf"},"__proto__":{}}}') as Json
  const fields = fieldsOf(schema)
  expect(fields.map(({ name, kind, input }) => [name, kind, input])).toEqual([['constructor', 'many', 'text'], ['toString', 'text', 'text'], ['__proto__', 'text', 'text']])
  expect(problemsOf(fields, new Map())).toEqual(new Map())
  expect(JSON.stringify(answerOf(fields, new Map()))).toBe('{}')
  const filled = new Map<string, string | string[]>([['constructor', ['a']], ['toString', 'b'], ['__proto__', 'c']])
  expect(JSON.stringify(answerOf(fields, filled))).toBe('{"constructor":["a"],"toString":"b","__proto__":"c"}')
})

test('what others call something is never taken for what every object has', () => {
  for (const name of ['constructor', 'toString', '__proto__', 'valueOf']) {
    expect(table({ a: 1 })[name]).toBeUndefined()
    expect(diffRows({ type: 'diff', path: 'a', newText: '', operation: name }).note).toBe(name)
  }
  expect(table({ a: 1 }).a).toBe(1)
})

test('a form takes and refuses what the server does, in the same words', () => {
  interface Judged { field: Json; value: string | number | boolean | string[]; unmet: string | null }
  const { forms } = JSON.parse(raw) as { forms: Judged[] }
  for (const { field, value, unmet } of forms) {
    const fields = fieldsOf({ properties: { f: field } })
    const problem = problemsOf(fields, new Map([['f', typeof value === 'number' ? String(value) : value]])).get('f') ?? null
    const words = problem?.replace('choice', 'item').replace(/^E(.*)\.$/, 'e$1') ?? null
    expect([field, value, words]).toEqual([field, value, unmet])
  }
})

test('no schema has no fields', () => {
  expect(fieldsOf(null)).toEqual([])
})

test('commands complete at the start, files behind an @', () => {
  expect(completingAt('/pl', 3)).toMatchObject({ kind: 'command', query: 'pl' })
  expect(completingAt('say /pl', 7)).toBeNull()
  expect(completingAt('me@example', 10)).toBeNull()
  const at = completingAt('see @"my fi', 11)
  expect(at).toMatchObject({ kind: 'file', query: 'my fi' })
  expect(at && completed('see @"my fi now', at, 'my file.txt')).toEqual({ text: 'see @"my file.txt" now', caret: 19 })
})

const session = (id: string, cwd: string, more: Partial<Summary> = {}): Summary => ({
  id, cwd, name: null, title: id, agent: 'demo', agentSessionId: null, importedFrom: null, status: 'idle', failed: false, lastEnding: null, createdAt: '2026-01-01',
  updatedAt: `2026-01-0${id.length}`, archived: false, parent: null, lastSeq: 0, owner: null, host: null, ...more,
})

test('sessions are filtered, newest first, by project', () => {
  const all = [session('a', '/x/app'), session('bb', '/y/app'), session('ccc', '/x/app', { archived: true })]
  expect(shownSessions(all, 'all', '').map((s) => s.id)).toEqual(['bb', 'a'])
  expect(shownSessions(all, 'archived', '').map((s) => s.id)).toEqual(['ccc'])
  expect(shownSessions(all, 'all', 'demo B').map((s) => s.id)).toEqual(['bb'])
  expect(byProject(shownSessions(all, 'all', '')).map((group) => group.name)).toEqual(['y/app', 'x/app'])
})

test('the name of a session stands beside its title where they differ', () => {
  expect(nameBeside(session('a', '/w', { name: 'fix', title: 'Fix the parser' }))).toBe('fix')
  expect(nameBeside(session('a', '/w', { name: 'fix', title: 'fix' }))).toBeNull()
  expect(nameBeside(session('a', '/w', { name: 'fix', title: null }))).toBeNull()
})

test('a path is shown as seen from the folder, and only from within; a sentence begins with a capital, a path does not', () => {
  expect(within('/w/a/b.py', '/w/a')).toBe('b.py')
  expect(within('/w/ab.py', '/w/a')).toBe('/w/ab.py')
  expect(sentence('the agent was started again', '/w/a')).toBe('The agent was started again')
  expect(sentence('/w/a/b.py was restored', '/w/a')).toBe('b.py was restored')
  expect(sentence('/w/c/b.py was restored', '/w/a')).toBe('/w/c/b.py was restored')
})

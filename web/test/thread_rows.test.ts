import { expect, test } from 'vitest'
import { rowOf, rowsOf, runWords } from '../src/core/session/rows'
import type { Entry, ToolCall } from '../src/core/session/state'
import { TurnRecords, decisionsAt, filesOf } from '../src/core/session/turn_records'

const call = (id: string, kind: string, more: object = {}) =>
  ({ type: 'tool_call', id, kind, status: 'completed', content: [], turnId: 't', seq: 0, at: 0, ...more }) as unknown as ToolCall
const words = { type: 'agent', turnId: 't', seq: 0 } as unknown as Entry
const closed = { isOpen: () => false, isApart: () => false }

test('a run of reads and searches is one row, and what changed or failed stands by itself', () => {
  const entries = [words, call('1', 'read'), call('2', 'search'), call('3', 'read'), call('4', 'edit'), call('5', 'read'), call('6', 'read'), call('7', 'read', { status: 'failed' })]
  expect(rowsOf(entries, closed)).toEqual([
    { at: 0, count: 1, heads: 0 }, { at: 1, count: 3, heads: 3 }, { at: 4, count: 1, heads: 0 },
    { at: 5, count: 1, heads: 0 }, { at: 6, count: 1, heads: 0 }, { at: 7, count: 1, heads: 0 },
  ])
  expect(runWords(entries.slice(1, 4) as ToolCall[])).toBe('Read 2 files, 1 search')
  expect(runWords([call('a', 'search'), call('b', 'search')])).toBe('2 searches')
})

test('an open run has its head at the first row, and a run ends with its turn', () => {
  const entries = [call('1', 'read'), call('2', 'read'), call('3', 'read'), call('4', 'read', { turnId: 'u' })]
  expect(rowsOf(entries, { ...closed, isOpen: ({ id }) => id === '1' })).toEqual([
    { at: 0, count: 1, heads: 3 }, { at: 1, count: 1, heads: 0 }, { at: 2, count: 1, heads: 0 }, { at: 3, count: 1, heads: 0 },
  ])
  expect(rowsOf(entries, closed).map(({ at, count }) => [at, count])).toEqual([[0, 3], [3, 1]])
  expect(rowsOf(entries, { ...closed, isApart: (at) => at === 1 }).length).toBe(4)
})

test('every entry is in one row, which is found again', () => {
  for (const kinds of ['rrrwrrrr', 'wrrrw', '', 'rr', 'rrrrrr']) {
    const entries = [...kinds].map((kind, at) => call(String(at), kind === 'r' ? 'read' : 'edit'))
    const rows = rowsOf(entries, closed)
    const seen = rows.flatMap(({ at, count }) => Array.from({ length: count }, (_, by) => at + by))
    expect(seen).toEqual(entries.map((_, at) => at))
    for (const at of seen) {
      const row = rows[rowOf(rows, at)]
      expect(row !== undefined && row.at <= at && at < row.at + row.count).toBe(true)
    }
  }
})

test('a decision is one line where it belongs, and what a turn took is counted for it alone', () => {
  const records = new TurnRecords()
  const yes = { effect: 'allow', reason: 'your answer', by: 'person' } as const
  const rule = { effect: 'allow', reason: '--write', by: 'rule' } as const
  records.add([
    { type: 'usage', used: 1, size: 2, cost: { amount: 1, currency: 'USD' }, seq: 1 },
    { type: 'turn_ended', turnId: 'a', seq: 2, at: 10 },
    { type: 'permission_requested', requestId: 'p', options: [], argv: ['make', 'all'], seq: 3 },
    { type: 'permission_settled', requestId: 'p', optionId: 'yes', decision: yes, seq: 4, at: 5 },
    { type: 'access', operation: 'read', decision: rule, paths: ['/w/a'], seq: 5 },
    { type: 'access', operation: 'write', decision: { effect: 'deny', reason: 'outside', by: 'rule' }, paths: ['/w/b'], toolCallId: 'c', seq: 6 },
    { type: 'usage', used: 1, size: 2, cost: { amount: 1.5, currency: 'USD' }, seq: 7 },
    { type: 'turn_ended', turnId: 'b', usage: { total: 900, input: 1, output: 2 }, seq: 8, at: 20 },
  ], '/w')
  records.add([{ type: 'turn_ended', turnId: 'a', seq: 2, at: 99 }], '/w')
  expect(records.ended.get('a')).toEqual({ at: 10, tokens: null, cost: { amount: 1, currency: 'USD' } })
  expect(records.ended.get('b')).toEqual({ at: 20, tokens: 900, cost: { amount: 0.5, currency: 'USD' } })
  const entries = [{ ...words, seq: 3 }, { ...call('c', 'edit'), seq: 6 }] as Entry[]
  const lines = decisionsAt(entries, records.decided, (id) => (id === 'c' ? 1 : -1))
  expect([...lines].map(([at, decided]) => [at, decided.map(({ what, decision }) => `${decision.effect} ${what}`)])).toEqual([[0, ['allow make all']], [1, ['deny b']]])
  // What a rule allowed is said where there is a tool call to say it at.
  expect(decisionsAt(entries, [{ ...records.decided[1]!, toolCallId: 'c' }], () => 1).get(1)).toHaveLength(1)
})

test('the files of a turn are those its tool calls changed', () => {
  const diff = (path: string) => ({ type: 'diff', path, newText: '' })
  expect(filesOf([call('1', 'edit', { content: [diff('a'), diff('b')] }), call('2', 'edit', { content: [diff('a')] }), call('3', 'edit', { status: 'failed', content: [diff('c')] }), words])).toBe(2)
})

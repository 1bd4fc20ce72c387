// The marks on the bar of a replay.

import { expect, test } from 'vitest'
import type { Event } from '../src/core/generated/events'
import { marksOf, nextMark, turnAt } from '../src/core/session/timeline'

const diff = { type: 'diff', path: '/p/src/a.py', newText: 'x' } as const
const events: Event[] = [
  { type: 'turn_started', turnId: 't1', content: [{ type: 'text', text: 'fix it' }] },
  { type: 'tool_call', toolCallId: 'c', content: [diff] },
  { type: 'tool_call', toolCallId: 'c', status: 'completed', content: [diff] },
  { type: 'permission_requested', requestId: 'r', options: [], title: 'make' } as unknown as Event,
  { type: 'usage', used: 1, size: 9, cost: { amount: 0.5, currency: 'USD' } },
  { type: 'usage', used: 2, size: 9, cost: { amount: 0.5, currency: 'USD' } },
  { type: 'turn_ended', turnId: 't1', error: 'broken' },
  { type: 'turn_started', turnId: 't2', content: [] },
]

test('turns, questions, edits, costs and failures are marked, each once', () => {
  const marks = marksOf(events)
  expect(marks.map(({ at, kind }) => `${at} ${kind}`)).toEqual(['1 turn', '2 edit', '4 question', '5 cost', '7 failed', '8 turn'])
  expect(marks[0]?.words).toBe('Turn: fix it')
  expect(marks[1]?.words).toBe('Edited a.py')
})

test('one goes from mark to mark, and from turn to turn', () => {
  const marks = marksOf(events)
  expect(nextMark(marks, 2, 1)?.at).toBe(4)
  expect(nextMark(marks, 4, -1)?.at).toBe(2)
  expect(nextMark(marks, 1, 1, 'turn')?.at).toBe(8)
  expect(nextMark(marks, 8, 1)).toBeNull()
  expect(nextMark(marks, 1, -1)).toBeNull()
})

test('a position is in the turn that began before it', () => {
  expect([0, 1, 7, 8, 99].map((at) => turnAt(events, at))).toEqual([null, 't1', 't1', 't2', 't2'])
})

test('of very many marks, turns stay', () => {
  const many = Array.from({ length: 5000 }, (_, number): Event => ({ type: 'tool_call', toolCallId: `c${number}`, content: [diff] }))
  const marks = marksOf([...many, ...events])
  expect(marks.length).toBeLessThanOrEqual(401)
  expect(marks.filter(({ kind }) => kind === 'turn')).toHaveLength(2)
})

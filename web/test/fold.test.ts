import { describe, expect, test } from 'vitest'
import raw from './golden.json?raw'
import { LIMITS, type Limits } from '../src/core/generated/limits'
import type { Event } from '../src/core/generated/events'
import { reduce } from '../src/core/session/fold'
import { contentOf, newState } from '../src/core/session/state'
import type { SessionState } from '../src/core/session/state'

interface Case { name: string; events: Event[]; state: unknown; limits?: Limits }

const golden = JSON.parse(raw) as Case[]

describe('the fold agrees with the one of the server', () => {
  test.each(golden)('$name', ({ events, state, limits }) => {
    const folded = newState()
    for (const event of events) reduce(folded, event, undefined, limits)
    expect(comparable(folded)).toEqual(state)
  })
})

test('a terminal that prints for ever keeps only its tail', () => {
  const state = newState()
  for (let at = 0; at < 5; at++) {
    reduce(state, { type: 'terminal_output', terminalId: 't', data: 'x'.repeat(LIMITS.tail) })
  }
  expect(state.terminals.get('t')?.output.length).toBeLessThanOrEqual(2 * LIMITS.tail)
})

test('a question that was stored with its old name for always is read as it was', () => {
  const state = newState()
  reduce(state, { type: 'permission_requested', requestId: 'p', options: [], description: 'allow writing /a' })
  expect(state.pending.get('p')).toMatchObject({ always: 'allow writing /a' })
})

function comparable(state: SessionState): unknown {
  const { places: _, size: _size, printed: _printed, ...rest } = state
  return {
    ...rest,
    entries: state.entries.map((entry) => {
      const { version: _version, size: _weight, ...row } = entry
      if (!('pieces' in row)) return row
      const { pieces: _pieces, until: _until, ...spoken } = row
      return { ...spoken, content: contentOf(entry as Parameters<typeof contentOf>[0]) }
    }),
    terminals: Object.fromEntries([...state.terminals].map(([id, { version: _v, dropped: _d, ...t }]) => [id, t])),
    pending: Object.fromEntries(state.pending),
    subagents: Object.fromEntries([...state.subagents].map(([id, { version: _v, ...child }]) => [id, { ...child, thread: comparable(child.thread) }])),
  }
}

import { expect, test } from 'vitest'
import raw from './golden.json?raw'
import type { Json } from '../src/core/generated/content'
import type { Event } from '../src/core/generated/events'
import { reduce } from '../src/core/session/fold'
import { hydrate } from '../src/core/session/hydrate'
import { contentOf, newState, type SessionState } from '../src/core/session/state'

const golden = JSON.parse(raw) as { name: string; events: Event[] }[]

function told(state: SessionState): Json & { entries: Json[] } {
  return {
    lastSeq: state.lastSeq,
    fence: state.fence,
    network: state.network,
    programs: structuredClone(state.programs) as unknown as Json[],
    programsBefore: state.programsBefore,
    agentSessionId: state.sessionId,
    status: state.open ? 'idle' : 'closed',
    pending: [...state.pending.values()],
    terminals: [...state.terminals.values()],
    turns: structuredClone(state.turns),
    queue: state.queue,
    entries: structuredClone(state.entries) as unknown as Json[],
  }
}

function thread(state: SessionState): unknown[] {
  return state.entries.map((entry) => ('pieces' in entry ? [entry.type, contentOf(entry)] : { ...entry, version: 0 }))
}

test.each(golden)('a session taken up in the middle goes on as if it had been followed: $name', ({ events }) => {
  // Ids that are used again, after a plan was removed or for the next turn, cannot be told from a snapshot.
  let turn = ''
  const plain = events.filter((event) => {
    if (event.type === 'turn_started' && event.turnId === turn) return false
    if (event.type === 'turn_started') turn = event.turnId
    return event.type !== 'plan_removed'
  })
  const followed = newState()
  const half = Math.floor(plain.length / 2)
  for (const event of plain.slice(0, half)) reduce(followed, event)
  const state = hydrate(told(followed))
  for (const event of plain.slice(half)) {
    reduce(followed, structuredClone(event))
    reduce(state, structuredClone(event))
  }
  expect(thread(state)).toEqual(thread(followed))
  expect([state.fence, state.network]).toEqual([followed.fence, followed.network])
  expect([state.programs, state.programsBefore]).toEqual([followed.programs, followed.programsBefore])
  expect([...state.terminals.values()].map((t) => t.output)).toEqual([...followed.terminals.values()].map((t) => t.output))
})

test('the turn that ended last is known, with its tokens', () => {
  const usage = { total: 5, input: 3, output: 2 }
  const state = hydrate({ turn: null, lastTurn: { id: 't', status: 'completed', stopReason: 'end_turn', usage } })
  expect(state.turns).toEqual([{ id: 't', status: 'completed', stopReason: 'end_turn', usage, error: null, seq: 0 }])
})

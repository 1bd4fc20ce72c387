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
  for (let cut = 3; cut < plain.length; cut += 6) goesOn(plain, cut)
})

function goesOn(events: Event[], cut: number): void {
  const followed = newState()
  for (const event of events.slice(0, cut)) reduce(followed, structuredClone(event))
  const state = hydrate(structuredClone(told(followed)) as Json)
  for (const event of events.slice(cut)) {
    reduce(followed, structuredClone(event))
    reduce(state, structuredClone(event))
  }
  expect(thread(state)).toEqual(thread(followed))
  expect([state.fence, state.network]).toEqual([followed.fence, followed.network])
  expect([state.programs, state.programsBefore]).toEqual([followed.programs, followed.programsBefore])
  expect([...state.terminals.values()].map((t) => t.output)).toEqual([...followed.terminals.values()].map((t) => t.output))
}

test('what the agent says the user said in a turn is not taken for its prompt', () => {
  const said = (text: string, seq: number, replay: boolean): Event =>
    ({ type: 'user_message', content: { type: 'text', text }, seq, at: seq, replay })
  const prompt: Event = { type: 'turn_started', turnId: 't', content: [{ type: 'text', text: 'Go' }], seq: 1, at: 1 }
  const replayed: Event = { type: 'agent_message', content: { type: 'text', text: 'from before' }, seq: 2, at: 2, replay: true }
  goesOn([prompt, replayed, said('one ', 3, false), said('two', 4, false)], 3)
})

test('the prompt of a turn is not told twice, even if it is part of a history', () => {
  const prompt: Event = { type: 'turn_started', turnId: 't', content: [{ type: 'text', text: 'Go' }], seq: 1, at: 1, replay: true }
  const echo: Event = { type: 'user_message', content: { type: 'text', text: 'Go' }, seq: 2, at: 2 }
  goesOn([prompt, echo], 1)
})

test('the turn that ended last is known, with its tokens', () => {
  const usage = { total: 5, input: 3, output: 2 }
  const state = hydrate({ turn: null, lastTurn: { id: 't', status: 'completed', stopReason: 'end_turn', usage } })
  expect(state.turns).toEqual([{ id: 't', status: 'completed', stopReason: 'end_turn', usage, error: null, seq: 0 }])
})

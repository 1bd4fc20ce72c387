import { expect, test } from 'vitest'
import { endingBehind, endingOf } from '../src/core/session/endings'
import { reduce } from '../src/core/session/fold'
import { hydrate } from '../src/core/session/hydrate'
import { newState } from '../src/core/session/state'

const text = (words: string) => ({ type: 'text' as const, text: words })

test('each turn that was stopped says so at its end, but for the last, which says it below', () => {
  const state = newState()
  for (const [turnId, stopReason] of [['a', 'cancelled'], ['b', 'end_turn'], ['c', 'max_tokens'], ['d', 'cancelled']] as const) {
    reduce(state, { type: 'turn_started', turnId, content: [text(turnId)] })
    reduce(state, { type: 'agent_message', content: text('so far') })
    reduce(state, { type: 'turn_ended', turnId, stopReason })
  }
  expect(state.entries.map((_, at) => endingBehind(state, at))).toEqual(
    [null, 'Stopped.', null, null, null, 'Stopped: the model reached its output limit.', null, null],
  )
  expect(endingOf(state.turns.at(-1))).toBe('Stopped.')
})

test('what the server tells of turns that were stopped is known after it was loaded', () => {
  const user = (turnId: string) => ({ type: 'user', pieces: [turnId], turnId })
  const state = hydrate({
    entries: [user('a'), user('b'), user('c')], stopped: { a: 'cancelled', c: 'cancelled' }, lastTurn: { id: 'c', status: 'completed', stopReason: 'cancelled' },
  })
  expect(state.turns.map(({ id }) => id)).toEqual(['a', 'c'])
  expect([0, 1, 2].map((at) => endingBehind(state, at))).toEqual(['Stopped.', null, null])
})

import { expect, test } from 'vitest'
import { hydrate } from '../src/core/session/hydrate'
import { isAtWork, stepUnderWay, type PlanEntry, type TurnStatus } from '../src/core/session/state'

const plan = (id: string) => ({ type: 'plan', planId: id, steps: [{ content: 'work', status: 'in_progress' }], seq: 1, at: 1 })

function after(status: TurnStatus, more: object = {}) {
  return hydrate({ entries: [plan('old'), plan('new')], lastTurn: { id: 't', status }, ...more } as Parameters<typeof hydrate>[0])
}

test.each([
  ['streaming', 'now'], ['waiting', 'now'], ['completed', 'unfinished'], ['cancelled', 'unfinished'], ['failed', 'failed'], ['interrupted', 'failed'],
] as const)('the step of a turn that is %s is %s', (status, mark) => {
  const state = after(status)
  expect(stepUnderWay(state, state.entries[1] as PlanEntry)).toBe(mark)
  expect(stepUnderWay(state, state.entries[0] as PlanEntry)).toBe('unfinished')
})

test('an agent that works on its own is at work', () => {
  expect(isAtWork(after('completed'))).toBe(false)
  expect(isAtWork(after('completed', { activity: 'running' }))).toBe(true)
})

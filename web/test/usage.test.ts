import { expect, test } from 'vitest'
import { barsOf, costOf, gapsOf, measured, timeOf, tokensOf } from '../src/core/usage'
import type { Spending, UsageRow } from '../src/core/generated/responses'
import { parseRoute, paths } from '../src/ui/shell/route'

const NOTHING: Spending = { turns: 1, toolCalls: 0, seconds: 0, waited: 0, tokens: null, cost: {}, estimated: {}, parked: 0, turnsWithoutTokens: 1, turnsWithoutCost: 1 }
const tokens = (total: number) => ({ total, input: total, cached: 0, output: 0, thought: 0 })
const spent = (more: Partial<Spending>): Spending => ({ ...NOTHING, turnsWithoutTokens: 0, turnsWithoutCost: 0, ...more })
const row = (name: string, more: Partial<Spending>): UsageRow => ({ name, title: null, spent: spent(more) })

test('what is not known is unknown, and never zero', () => {
  expect([tokensOf(NOTHING), costOf(NOTHING)]).toEqual(['unknown', 'unknown'])
  expect(costOf(spent({ cost: { USD: 0 } }))).toBe('$0.00')
})

test('a sum with gaps is at least that, and the gaps are told', () => {
  const some = spent({ turns: 3, tokens: tokens(1234), cost: { USD: 1.2 }, estimated: { USD: 0.2 }, turnsWithoutTokens: 1, turnsWithoutCost: 2 })
  expect([tokensOf(some), costOf(some)]).toEqual(['≥ 1,234', '≥ $1.20'])
  expect(gapsOf(some)).toEqual(['The tokens of 1 turn are not known, or only in part.', 'The cost of 2 turns is not known, or only in part.', '$0.20 of the cost is estimated from the prices of the models.'])
  expect(gapsOf(spent({}))).toEqual([])
})

test('money of several currencies is not added up', () => {
  expect(costOf(spent({ cost: { USD: 1, EUR: 2 } }))).toBe('€2.00 + $1.00')
})

test('times are read at a glance', () => {
  expect([timeOf(0), timeOf(42.4), timeOf(3723)]).toEqual(['0:00', '0:42', '1:02:03'])
})

test('there is a bar for each day, also for those on which nothing was used', () => {
  const rows = [row('2026-11-16', { cost: { USD: 1 } }), row('2026-11-18', { cost: { USD: 4 } })]
  const bars = barsOf(rows, 4, '2026-11-18', measured(spent({ cost: { USD: 5 } })).of)
  expect(bars.map(({ day, share }) => [day, share])).toEqual([['2026-11-15', 0], ['2026-11-16', 0.25], ['2026-11-17', 0], ['2026-11-18', 1]])
  expect(barsOf(rows, 1, '2026-11-18', () => 0).map(({ share }) => share)).toEqual([0, 0])
})

test('bars show money if any is known, else tokens, else turns', () => {
  expect(measured(spent({ cost: { EUR: 1, USD: 3 } })).name).toBe('Cost in USD')
  expect(measured(spent({ tokens: tokens(5) })).name).toBe('Tokens')
  const turns = measured(spent({ turns: 2 }))
  expect([turns.name, turns.of(spent({ turns: 2 })), turns.words(spent({ turns: 2 }))]).toEqual(['Turns', 2, '2 turns'])
})

test('the address says what is shown', () => {
  expect(parseRoute('#/usage')).toEqual({ screen: 'usage', by: 'agent', days: 30 })
  expect(parseRoute(paths.usage('model', 7))).toEqual({ screen: 'usage', by: 'model', days: 7 })
  expect(parseRoute('#/usage/colour/9999')).toEqual({ screen: 'usage', by: 'agent', days: 30 })
})

// What was used, in words and as bars. What is not known is not zero: a sum with gaps says "at least".

import type { Spending, UsageRow } from './generated/responses'
import { money, plural } from './text/format'

export function tokensOf(spent: Spending): string {
  if (spent.tokens == null) return 'unknown'
  return `${atLeast(spent.turnsWithoutTokens)}${spent.tokens.total.toLocaleString('en')}`
}

export function costOf(spent: Spending): string {
  const sums = sumsOf(spent.cost)
  return sums === '' ? 'unknown' : `${atLeast(spent.turnsWithoutCost)}${sums}`
}

function sumsOf(amounts: Record<string, number>): string {
  return Object.keys(amounts).sort().map((currency) => money(amounts[currency] ?? 0, currency)).join(' + ')
}

function atLeast(missing: number): string {
  return missing > 0 ? '≥ ' : ''
}

/** As `0:42` or `1:02:03`. */
export function timeOf(seconds: number): string {
  const whole = Math.round(seconds)
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  const two = (n: number) => String(n).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}

/** What the sums leave out, and what in them was not reported by an agent. */
export function gapsOf(spent: Spending): string[] {
  const told: string[] = []
  if (spent.turnsWithoutTokens > 0) told.push(`The tokens of ${plural(spent.turnsWithoutTokens, 'turn')} are not known, or only in part.`)
  if (spent.turnsWithoutCost > 0) told.push(`The cost of ${plural(spent.turnsWithoutCost, 'turn')} is not known, or only in part.`)
  const estimated = sumsOf(spent.estimated)
  if (estimated !== '') told.push(`${estimated} of the cost is estimated from the prices of the models.`)
  return told
}

/** What the bars show: money, if any is known, else tokens, else turns, which are always known. */
export function measured(total: Spending): { name: string; of: (spent: Spending) => number; words: (spent: Spending) => string } {
  const currency = Object.keys(total.cost).sort((a, b) => (total.cost[b] ?? 0) - (total.cost[a] ?? 0))[0]
  if (currency === undefined || !total.cost[currency]) {
    if (total.tokens == null) return { name: 'Turns', of: ({ turns }) => turns, words: ({ turns }) => plural(turns, 'turn') }
    return { name: 'Tokens', of: (spent) => spent.tokens?.total ?? 0, words: tokensOf }
  }
  return { name: `Cost in ${currency}`, of: (spent) => spent.cost[currency] ?? 0, words: costOf }
}

export interface Bar { day: string; share: number; row: UsageRow | null }

/** One for each of the last days, also for those on which nothing was used; `share` is of the highest. */
export function barsOf(rows: UsageRow[], days: number, today: string, of: (spent: Spending) => number): Bar[] {
  const known = new Map(rows.map((row) => [row.name, row]))
  const last = Date.parse(`${today}T00:00:00Z`)
  const span = Array.from({ length: days }, (_, at) => new Date(last - at * 86_400_000).toISOString().slice(0, 10))
  const names = [...new Set([...span, ...known.keys()])].sort()
  const most = Math.max(...rows.map((row) => of(row.spent)), 0)
  return names.map((day) => {
    const row = known.get(day) ?? null
    return { day, row, share: row === null || most === 0 ? 0 : of(row.spent) / most }
  })
}

import { expect, test } from 'vitest'
import { busierThan, busiest, keptTiles } from '../src/core/session/tiles'
import type { Summary } from '../src/live/api'

type Told = [id: string, status: Summary['status'], more?: Partial<Summary>]

const sessions = (...told: Told[]) => new Map(told.map(([id, status, more], at) => [id, {
  id, status, failed: false, lastEnding: null, cwd: '/w', name: null, title: id, agent: 'demo', agentSessionId: null, importedFrom: null, createdAt: `2026-01-0${at + 1}`,
  updatedAt: `2026-01-0${at + 1}`, archived: false, parent: null, lastSeq: 0, owner: null, host: null, ...more,
} satisfies Summary]))

const quiet: Told[] = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => [id, 'idle'])

test('the busiest are chosen, in the order they were made', () => {
  expect(busiest(sessions(['x', 'idle'], ['y', 'waiting'], ...quiet.slice(0, 6), ['z', 'running']))).toEqual(['y', 'c', 'd', 'e', 'f', 'z'])
})

test('what is shown stays in its place when others begin to run', () => {
  const shown = busiest(sessions(...quiet))
  expect(shown).toEqual(['c', 'd', 'e', 'f', 'g', 'h'])
  const busy = sessions(['a', 'running'], ['b', 'waiting'], ...quiet.slice(2))
  expect(keptTiles(busy, shown)).toEqual(shown)
  expect(busierThan(busy, shown)).toBe(2)
})

test('only the place of one that is gone or archived is taken, and free ones are filled', () => {
  const all = sessions(['a', 'idle'], ['b', 'idle', { archived: true }], ['c', 'idle'], ['d', 'running'])
  expect(keptTiles(all, ['a', 'b', 'gone', 'c'])).toEqual(['a', 'd', 'c'])
  expect(keptTiles(all, ['c'])).toEqual(['c', 'd', 'a'])
})

test('nothing is busier than six that run, nor than a grid that shows all', () => {
  const running = sessions(...['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id): Told => [id, 'running']))
  expect(busierThan(running, busiest(running))).toBe(0)
  const few = sessions(['a', 'running'], ['b', 'idle'])
  expect(busierThan(few, busiest(few))).toBe(0)
})

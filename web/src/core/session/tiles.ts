// Which sessions stand side by side. What is shown stays where it is, whatever the others do: someone
// may be writing in it. Pure.

import type { Summary } from '../../live/api'

export const MOST_TILES = 6

const WEIGHT: Record<Summary['status'], number> = { waiting: 0, running: 1, parked: 2, interrupted: 2, idle: 2, closed: 3 }

type Sessions = ReadonlyMap<string, Summary>

/** What needs someone first, then what runs, then what was used last; in the order they were made. */
export function busiest(all: Sessions): string[] {
  return ranked(all)
    .slice(0, MOST_TILES)
    .sort((a, b) => a.createdAt.localeCompare(b.createdAt))
    .map(({ id }) => id)
}

/** The same tiles. The place of one that is gone, or one that was free, is taken by the busiest other. */
export function keptTiles(all: Sessions, before: string[]): string[] {
  const others = ranked(all).map(({ id }) => id).filter((id) => !before.includes(id))
  const there = before.map((id) => (all.get(id)?.archived === false ? id : others.shift()))
  return [...there, ...others].filter((id) => id !== undefined).slice(0, MOST_TILES)
}

/** How many that wait or run are not shown, while something quieter is. */
export function busierThan(all: Sessions, shown: string[]): number {
  const busy = ranked(all).filter(({ status }) => WEIGHT[status] < WEIGHT.idle)
  const missing = busy.filter(({ id }) => !shown.includes(id)).length
  return Math.min(missing, shown.length - busy.length + missing)
}

function ranked(all: Sessions): Summary[] {
  return [...all.values()]
    .filter((session) => !session.archived)
    .sort((a, b) => WEIGHT[a.status] - WEIGHT[b.status] || b.updatedAt.localeCompare(a.updatedAt))
}

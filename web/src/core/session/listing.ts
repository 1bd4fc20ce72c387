// Which sessions the list shows, and in which groups. Pure.

import type { Summary } from '../../live/api'
import { baseName } from '../text/format'

export type Filter = 'all' | 'waiting' | 'running' | 'finished' | 'archived'

export interface Group { cwd: string; name: string; sessions: Summary[] }

export function shownSessions(all: Iterable<Summary>, filter: Filter, query: string): Summary[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return [...all]
    .filter((session) => fits(session, filter))
    .filter((session) => {
      const text = `${session.title ?? ''} ${session.name ?? ''} ${session.agent} ${session.cwd} ${session.id}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
    .sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
}

function fits(session: Summary, filter: Filter): boolean {
  if (filter === 'archived') return session.archived
  if (session.archived) return false
  if (filter === 'waiting' || filter === 'running') return session.status === filter
  return filter === 'all' || (session.status !== 'running' && session.status !== 'waiting')
}

/** By project, the most recently used first. Folders of the same name get longer names. */
export function byProject(sessions: Summary[]): Group[] {
  const groups = new Map<string, Group>()
  for (const session of sessions) {
    const group = groups.get(session.cwd) ?? { cwd: session.cwd, name: session.cwd === '' ? 'Imported' : baseName(session.cwd), sessions: [] }
    group.sessions.push(session)
    groups.set(session.cwd, group)
  }
  const all = [...groups.values()]
  for (const group of all) {
    if (all.some((other) => other !== group && baseName(other.cwd) === baseName(group.cwd))) {
      group.name = group.cwd.split('/').slice(-2).join('/')
    }
  }
  return all
}

/** What the user calls it on the command line, where the title is something else. */
export function nameBeside(session: Summary): string | null {
  return session.title && session.name && session.name !== session.title ? session.name : null
}

export function titleOf(session: Pick<Summary, 'title' | 'name'>): string {
  return session.title || session.name || 'New session'
}

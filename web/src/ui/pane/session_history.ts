// The history of a session outside its thread: usage and decisions. Fetched once, then only what is new.

import type { AccessDecided, Event, PermissionRequested, PermissionSettled, UsageChanged } from '../../core/generated/events'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { useRefetch } from '../common/refetch'

export type Past = UsageChanged | AccessDecided | PermissionRequested | PermissionSettled

const TYPES = 'usage,access,permission_requested,permission_settled'
const PAGE = 5000
const known = new Map<string, Past[]>()

export function useSessionHistory(session: LiveSession): Past[] {
  const version = useSignal(session.facts)
  return useRefetch(session.id, version, () => historyOf(session.id)).value ?? known.get(session.id) ?? []
}

export async function historyOf(id: string): Promise<Past[]> {
  for (;;) {
    const { events } = await sessions.events(id, last(known.get(id)), PAGE, TYPES)
    // Another question may have been answered meanwhile.
    const before = known.get(id) ?? []
    const fresh = events.filter((event) => (event.seq ?? 0) > last(before)) as Extract<Event, Past>[]
    if (fresh.length) known.set(id, [...before, ...fresh])
    if (events.length === 0) return known.get(id) ?? [] // a page with room left may have had no room for the next
  }
}

function last(events: Past[] | undefined): number {
  return events?.at(-1)?.seq ?? 0
}

// The decisions and the ends of turns of a session, fetched once and then only what is new.

import { TurnRecords, type RecordedEvent } from '../core/session/turn_records'
import { isOver } from '../core/session/state'
import { sessions } from './api'
import type { LiveSession } from './session'

const TYPES = 'turn_ended,usage,access,permission_requested,permission_settled'
const PAGE = 5_000
const known = new Map<string, TurnRecords>()

export function recordsOf(session: LiveSession): TurnRecords {
  const found = known.get(session.id) ?? new TurnRecords()
  known.set(session.id, found)
  return found
}

/** Grows with whatever can have added to them. */
export function stageOf({ state }: LiveSession): number {
  const done = state.entries.filter((entry) => entry.type === 'tool_call' && entry.status !== 'pending').length
  return state.entriesBefore + done + state.turns.filter(({ status }) => isOver(status)).length - state.pending.size / 1000
}

export async function askRecords(session: LiveSession): Promise<number> {
  const records = recordsOf(session)
  for (;;) {
    const { events } = await sessions.events(session.id, records.last, PAGE, TYPES)
    records.add(events as RecordedEvent[], session.state.cwd)
    if (events.length === 0) return records.last // a page with room left may have had no room for the next
  }
}

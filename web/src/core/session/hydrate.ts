// Turns a session from the server into the state that the fold continues from. The server omits
// defaults and may send only the end of a long thread.

import type { Json } from '../generated/content'
import { ROW } from '../generated/limits'
import { NEW_ENTRIES, NEW_PENDING, newQueuedPrompt, newResetEntry, newTurnState } from '../generated/state'
import type { Entry, Pending, QueuedPrompt, SessionState, Subagent, Terminal, TurnState } from './state'
import { newState, newSubagent, newTerminal } from './state'
import { LAST_USER, PROMPT, keyOf } from './thread'

type Told = Json & { entries?: Json[]; firstEntry?: number }

/** What a state has as the server tells it. */
const SAME = [
  'title', 'agent', 'cwd', 'continuity', 'fence', 'network', 'additionalDirectories', 'modes', 'configOptions', 'commands',
  'usage', 'lastSeq', 'updatedAt', 'activity', 'background', 'programs', 'programsBefore', 'parked',
] as const satisfies readonly (keyof SessionState)[]

export function hydrate(told: Told): SessionState {
  const state = newState()
  state.entriesBefore = told.firstEntry ?? 0
  if (told.agentSessionId != null) state.sessionId = String(told.agentSessionId)
  for (const name of SAME) if (told[name] != null) Object.assign(state, { [name]: told[name] })
  state.open = told.status !== 'closed'
  state.entries = (told.entries ?? []).map(entryOf)
  state.turns = turnsOf(told)
  state.queue = list(told.queue).map((prompt) => ({ ...newQueuedPrompt(), ...prompt }) as QueuedPrompt)
  for (const pending of list(told.pending)) state.pending.set(String(pending.id), pendingOf(pending))
  for (const terminal of list(told.terminals)) state.terminals.set(String(terminal.id), terminalOf(terminal))
  for (const child of list(told.subagents)) state.subagents.set(String(child.sessionId), subagentOf(child))
  state.subagentsSize = [...state.subagents.values()].reduce((sum, { thread }) => sum + thread.size, 0)
  state.printed = [...state.terminals.values()].reduce((sum, { output }) => sum + output.length, 0)
  index(state)
  return state
}

function list(value: unknown): Json[] {
  if (Array.isArray(value)) return value as Json[]
  return typeof value === 'object' && value !== null ? (Object.values(value) as Json[]) : []
}

function entryOf(told: Json): Entry {
  const type = String(told.type)
  const fields = Object.hasOwn(NEW_ENTRIES, type) ? NEW_ENTRIES[type as Entry['type']]() : newResetEntry()
  const entry: Json = { version: 0, ...fields, ...told }
  if (type === 'user' || type === 'agent' || type === 'thought') {
    entry.pieces = joined((told.pieces ?? told.content ?? []) as unknown[], type === 'user')
    entry.until = entry.at
  }
  return entry as unknown as Entry
}

/** Neighbouring texts as one piece, except in a prompt: there an echo is recognised by its pieces. */
function joined(pieces: unknown[], apart: boolean): unknown[] {
  if (apart) return [...pieces]
  const result: unknown[] = []
  for (const piece of pieces) {
    const last = result.at(-1)
    if (typeof piece === 'string' && typeof last === 'string') result[result.length - 1] = last + piece
    else result.push(piece)
  }
  return result
}

function turnsOf(told: Told): TurnState[] {
  const last = told.lastTurn as Json | null | undefined
  const turns = last == null ? list(told.turns) : [...stoppedBefore(told, last), last]
  return turns.map((turn) => ({ ...newTurnState(), ...turn }) as TurnState)
}

/** Of the turns before the last, those that did not end as they should. */
function stoppedBefore(told: Told, last: Json): Json[] {
  const stopped = Object.entries((told.stopped ?? {}) as Record<string, string>)
  return stopped.filter(([id]) => id !== last.id).map(([id, reason]) => ({ id, status: reason === 'cancelled' ? reason : 'completed', stopReason: reason }))
}

function pendingOf(told: Json): Pending {
  const defaults = told.kind === 'elicitation' ? NEW_PENDING.elicitation() : NEW_PENDING.permission()
  return { ...defaults, ...told } as unknown as Pending
}

function terminalOf(told: Json): Terminal {
  const { pieces, ...rest } = told as Json & { pieces?: string[] }
  const output = typeof told.output === 'string' ? told.output : (pieces ?? []).join('')
  return { ...newTerminal(String(told.id)), ...rest, output } as Terminal
}

function subagentOf(told: Json): Subagent {
  const { thread, ...fields } = told as Json & { thread?: Json }
  const child = { ...newSubagent(String(told.sessionId)), ...fields } as Subagent
  if (thread !== undefined) child.thread = threadOf(thread)
  return child
}

/** A state as the server holds it, which says how many entries there are before its own. */
function threadOf(told: Json): SessionState {
  const state = hydrate({ ...told, firstEntry: Number(told.entriesBefore ?? 0) } as Told)
  state.usage = (told.usage ?? null) as SessionState['usage']
  return state
}

/** Index the entries that later events change, and weigh them. A turn begins with its prompt, so both have one `seq`. */
export function index(state: SessionState): void {
  const { places } = state
  places.clear()
  state.size = 0
  const prompted = state.turns.at(-1)?.seq || null
  state.entries.forEach((entry, at) => {
    const place = state.entriesBefore + at
    state.size += ROW + entry.size
    if (entry.type === 'user') {
      places.set(LAST_USER, place)
      if (entry.steer !== null || entry.seq === prompted) places.set(PROMPT, place)
    }
    const key = keyOf(entry)
    if (key !== null) places.set(key, place)
  })
}

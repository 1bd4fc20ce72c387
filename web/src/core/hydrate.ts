// Turns a session from the server into the state that the fold continues from. The server omits
// defaults and may send only the end of a long thread.

import type { Json } from './generated/content'
import { ROW } from './generated/limits'
import { NEW_ENTRIES, NEW_PENDING, newResetEntry, newSubagent, newTurnState } from './generated/state'
import type { Entry, Pending, SessionState, Subagent, Terminal, TurnState } from './state'
import { newState, newTerminal } from './state'
import { LAST_USER, PROMPT, keyOf } from './thread'

type Told = Json & { entries?: Json[]; firstEntry?: number }

export function hydrate(told: Told): SessionState {
  const state = newState()
  state.entries_before = told.firstEntry ?? 0
  Object.assign(state, pick(told, { title: 'title', agent: 'agent', cwd: 'cwd', continuity: 'continuity' }))
  Object.assign(state, pick(told, {
    agentSessionId: 'session_id', additionalDirectories: 'additional_directories', modes: 'modes',
    configOptions: 'config_options', commands: 'commands', usage: 'usage', queue: 'queue',
    lastSeq: 'last_seq', updatedAt: 'updated_at', activity: 'activity', background: 'background',
  }))
  state.open = told.status !== 'closed'
  state.entries = (told.entries ?? []).map(entryOf)
  state.turns = turnsOf(told)
  for (const pending of list(told.pending)) state.pending.set(String(pending.id), pendingOf(pending))
  for (const terminal of list(told.terminals)) state.terminals.set(String(terminal.id), terminalOf(terminal))
  for (const child of list(told.subagents)) state.subagents.set(String(child.session_id), subagentOf(child))
  state.printed = [...state.terminals.values()].reduce((sum, { output }) => sum + output.length, 0)
  index(state)
  return state
}

function list(value: unknown): Json[] {
  if (Array.isArray(value)) return value as Json[]
  return typeof value === 'object' && value !== null ? (Object.values(value) as Json[]) : []
}

function pick(from: Json, names: Record<string, string>): Json {
  const found: Json = {}
  for (const [theirs, ours] of Object.entries(names)) if (from[theirs] != null) found[ours] = from[theirs]
  return found
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
  return stopped.filter(([id]) => id !== last.id).map(([id, reason]) => ({ id, status: reason === 'cancelled' ? reason : 'completed', stop_reason: reason }))
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
  return { ...newSubagent(), ...told } as Subagent
}

/** Index the entries that later events change, and weigh them. */
export function index(state: SessionState): void {
  const { places } = state
  places.clear()
  state.size = 0
  state.entries.forEach((entry, at) => {
    const place = state.entries_before + at
    state.size += ROW + entry.size
    if (entry.type === 'user') {
      places.set(LAST_USER, place)
      if (beginsTurn(entry, state.entries[at - 1])) places.set(PROMPT, place)
    }
    const key = keyOf(entry)
    if (key !== null) places.set(key, place)
  })
}

/** A prompt is the first entry of its turn. */
function beginsTurn(entry: Entry, before: Entry | undefined): boolean {
  return entry.turn_id !== null && entry.turn_id !== before?.turn_id
}

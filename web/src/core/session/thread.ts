// The entries of a thread within the limits: each is weighed and found again by its key, and the
// oldest go when there is too much. The fold changes entries through this alone.

import type { Event } from '../generated/events'
import { LIMITS, NODE, ROW, type Limits } from '../generated/limits'
import { OPEN_STATUSES } from '../generated/state'
import { cutTo, fitted, fitting, points, weigh } from './state_limits'
import { entryCount, placed, runningTurn } from './state'
import type {
  CompactionEntry, Entry, PeerMessageEntry, PlanEntry, SessionState, Subagent, Terminal, ToolCall,
} from './state'

/** What a batch of events changed, for the views. */
export class Changes {
  readonly entries: Set<Entry>
  readonly terminals: Set<Terminal>
  readonly subagents: Set<Subagent>
  appended = false
  facts = false

  /** Rows of a subagent's thread are among those `around` it. */
  constructor(around?: Changes) {
    this.entries = around?.entries ?? new Set()
    this.terminals = around?.terminals ?? new Set()
    this.subagents = around?.subagents ?? new Set()
  }
}

export const LAST_USER = 'last user entry'
export const PROMPT = 'last prompt'
export const STEPS = 'steps'

type Indexed = ToolCall | PlanEntry | CompactionEntry | PeerMessageEntry
/** An entry before it has a place in the thread. */
type New<T extends Entry> = T extends Entry ? Omit<T, 'seq' | 'at' | 'turnId' | 'version' | 'size' | 'cut'> : never

export class Thread {
  constructor(
    protected readonly state: SessionState,
    protected readonly changes = new Changes(),
    protected readonly limits: Limits = LIMITS,
  ) {}

  /** A thought looks different once it is over. */
  protected settleThought(at: number): void {
    const entry = this.state.entries.at(at)
    if (entry?.type === 'thought') this.changed(entry)
  }

  protected changed(entry: Entry): void {
    entry.version++
    this.changes.entries.add(entry)
  }

  protected append<T extends Entry>(event: Event, fields: New<T>, size = 0): T {
    const { state } = this
    const turn = event.replay ? null : runningTurn(state)
    const stamp = { seq: event.seq ?? 0, at: event.at ?? 0, turnId: turn?.id ?? null, version: 0, size, cut: 0 }
    const entry = { ...fields, ...stamp } as unknown as T
    if (entry.type === 'user') state.places.set(LAST_USER, entryCount(state))
    state.entries.push(entry)
    state.size += ROW + size
    this.changes.appended = true
    this.settleThought(-2)
    this.forget()
    return entry
  }

  /** The entry with this id, made on first sight whatever comes first. */
  protected indexed<T extends Indexed>(event: Event, key: string, fields: New<T>): T {
    const { state } = this
    const known = placed(state, key)
    if (known !== undefined && known.type === (fields as { type: string }).type) return known as T
    state.places.set(key, entryCount(state))
    return this.append<T>(event, fields, 2 * points(key))
  }

  // ── limits ───────────────────────────────────────────────────────────────────────────────────

  protected grow(entry: Entry, by: number): void {
    entry.size += by
    this.state.size += by
  }

  /** Set a field to as much of a value as fits next to the other fields. */
  protected put<T extends Entry, K extends keyof T>(entry: T, field: K, value: T[K]): void {
    if (!isEmpty(entry[field])) this.grow(entry, -weigh(entry[field]))
    entry[field] = value
    if (isEmpty(value)) return
    const { kept, weight } = fitted(value, this.limits.entry - entry.size)
    if (kept !== value) entry.cut += weigh(value) - weight
    entry[field] = kept
    if (!isEmpty(kept)) this.grow(entry, weight)
  }

  /** The same for a list of which each item stays whole. */
  protected putItems<T extends Entry, K extends keyof T, I>(entry: T, field: K, items: T[K] & I[]): void {
    this.grow(entry, -weightOf(entry[field] as I[]))
    const { kept, weight, cut } = fitting<I>(items, this.limits.entry - entry.size)
    entry[field] = kept as T[K]
    this.grow(entry, weight)
    entry.cut += cut
  }

  protected addItem<I>(entry: Entry, items: I[], item: I): void {
    const { kept, weight, cut } = fitting([item], this.limits.entry - entry.size)
    items.push(...kept)
    this.grow(entry, weight)
    entry.cut += cut
  }

  /** Let the oldest entries go when there is too much, as the server does. */
  protected forget(): void {
    const { state, limits } = this
    let [count, size, gone] = [state.entries.length, state.size, 0]
    if (count <= limits.entries && size <= limits.thread) return
    const urgent = count > 2 * limits.entries || size > 2 * limits.thread
    const turn = runningTurn(state)?.id ?? null
    const [most, heaviest] = [Math.floor(limits.entries * 3 / 4), Math.floor(limits.thread * 3 / 4)]
    while (gone < state.entries.length - 1 && (count > most || size > heaviest)) {
      const entry = state.entries[gone]
      if (entry === undefined || (!urgent && turn !== null && isUnderWay(entry, turn))) break
      size -= ROW + entry.size
      const key = keyOf(entry)
      if (key !== null && state.places.get(key) === state.entriesBefore + gone) state.places.delete(key)
      count--
      gone++
    }
    if (gone === 0) return
    state.entries.splice(0, gone)
    state.entriesBefore += gone
    state.size = size
    this.changes.appended = true
  }

  protected line(text: string | null): string | null {
    return text === null ? null : cutTo(text, this.limits.line)
  }

  protected facts<I>(items: readonly I[]): I[] {
    return fitting(items, this.limits.facts).kept
  }
  /** Only the running turn's is walked: older turns ended with their own. */
  protected *tail(turnId: string): Generator<Entry> {
    const { entries } = this.state
    for (let at = entries.length - 1; at >= 0; at--) {
      const entry = entries[at]
      if (entry === undefined || entry.turnId !== turnId) return
      yield entry
    }
  }
}

function isUnderWay(entry: Entry, turnId: string): boolean {
  if (entry.turnId !== turnId || (entry.type !== 'tool_call' && entry.type !== 'compaction')) return false
  return OPEN_STATUSES.has(entry.status)
}

/** The key of an entry in `places`. */
export function keyOf(entry: Entry): string | null {
  switch (entry.type) {
    case 'tool_call': return `tool:${entry.id}`
    case 'compaction': return `compaction:${entry.id}`
    case 'peer_message': return `peer:${entry.id}`
    case 'plan': return entry.planId ? `plan:${entry.planId}` : STEPS
    case 'user':
    case 'agent':
    case 'thought': return entry.messageId === null ? null : `${entry.type}:${entry.messageId}`
    default: return null
  }
}

export const weightOf = (items: readonly unknown[]) => items.reduce((sum: number, item) => sum + weigh(item), 0)

export const member = (key: string, value: unknown) => NODE + points(key) + weigh(value)

/** What weighs nothing: all that a server written in Python takes for false. */
export function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return !value
}

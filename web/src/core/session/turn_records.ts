// What the thread says of a turn in addition to its entries: what was decided in it, by whom, and what it took. Pure.

import type { AccessDecided, PermissionRequested, PermissionSettled, TurnEnded, UsageChanged } from '../generated/events'
import type { Cost, Decision } from '../generated/facts'
import { commandLine } from '../text/safe_text'
import { within } from '../text/format'
import type { Entry } from './state'

export type RecordedEvent = TurnEnded | UsageChanged | AccessDecided | PermissionRequested | PermissionSettled

export interface Decided { seq: number; at: number; toolCallId: string | null; subagent: string | null; what: string; operation: string; decision: Decision }
export interface Ended { at: number; tokens: number | null; cost: Cost | null }

/** Grows by the events that are new; what is not shown of them is not kept. */
export class TurnRecords {
  readonly decided: Decided[] = []
  readonly ended = new Map<string, Ended>()
  last = 0
  private readonly asked = new Map<string, Omit<Decided, 'seq' | 'at' | 'decision'>>()
  /** What the session had cost so far, and when the turn before ended. */
  private cost: Cost | null = null
  private before: Cost | null = null

  add(events: readonly RecordedEvent[], cwd: string): void {
    for (const event of events) {
      if ((event.seq ?? 0) <= this.last) continue
      this.last = event.seq ?? this.last
      this.take(event, cwd)
    }
  }

  private take(event: RecordedEvent, cwd: string): void {
    if (event.type === 'usage') this.cost = event.cost ?? this.cost
    else if (event.type === 'turn_ended') {
      this.ended.set(event.turnId, { at: event.at ?? 0, tokens: event.usage?.total ?? null, cost: difference(this.cost, this.before) })
      this.before = this.cost
    } else if (event.type === 'permission_requested') this.asked.set(event.requestId, aboutOf(event, cwd))
    else {
      const about = event.type === 'access' ? aboutOf(event, cwd) : this.asked.get(event.requestId)
      if (event.type === 'permission_settled') this.asked.delete(event.requestId)
      if (about !== undefined) this.decided.push({ ...about, seq: event.seq ?? 0, at: event.at ?? 0, decision: event.decision })
    }
  }
}

function aboutOf(event: AccessDecided | PermissionRequested, cwd: string) {
  const command = event.argv == null ? '' : commandLine(event.argv)
  const paths = (event.paths ?? []).map((path) => within(path, cwd)).join(', ')
  const host = event.type === 'access' ? event.host ?? '' : ''
  return { toolCallId: event.toolCallId ?? null, subagent: event.subagent ?? null, what: command || paths || host || (event.title ?? ''), operation: event.operation ?? 'other' }
}

/** What a session has cost is reported as a sum; another currency cannot be compared. */
function difference(now: Cost | null, before: Cost | null): Cost | null {
  if (now === null) return null
  const amount = before !== null && before.currency === now.currency ? now.amount - before.amount : now.amount
  return amount > 0 ? { amount, currency: now.currency } : null
}

/** For each entry what was decided about it or right after it. What a rule allowed without a tool call is only in the list of decisions. */
export function decisionsAt(entries: readonly Entry[], decided: readonly Decided[], place: (id: string) => number): Map<number, Decided[]> {
  const found = new Map<number, Decided[]>()
  for (const each of decided) {
    if (each.subagent !== null) continue
    const own = each.toolCallId === null ? -1 : place(each.toolCallId)
    const silent = each.decision.effect === 'allow' && each.decision.by !== 'person'
    if (own < 0 && silent) continue
    const at = own >= 0 ? own : lastBefore(entries, each.seq)
    if (at >= 0) found.set(at, [...(found.get(at) ?? []), each])
  }
  return found
}

function lastBefore(entries: readonly Entry[], seq: number): number {
  let [low, high] = [-1, entries.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((entries[middle]?.seq ?? 0) <= seq) low = middle
    else high = middle - 1
  }
  return low
}

/** Which files its tool calls show as changed. */
export function filesOf(entries: readonly Entry[]): number {
  const paths = new Set<string>()
  for (const entry of entries) {
    if (entry.type !== 'tool_call' || entry.status === 'failed') continue
    for (const item of entry.content) if (item.type === 'diff') paths.add(item.path)
  }
  return paths.size
}

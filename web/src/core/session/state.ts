// What a session is at one moment, as the page holds it: the ordered entries of its thread and the
// facts around them. The types of the server, with maps instead of objects and with what the page
// alone counts. Made by `reduce` and `hydrate`; everything else reads it.

import { textOf } from './content'
import type { Content, ToolContent } from '../generated/content'
import type * as g from '../generated/state'
import { ENDINGS, newSessionState, newSubagent as defaultSubagent, newTerminal as defaultTerminal } from '../generated/state'

export type {
  Ending, Pending, PendingElicitation, PendingPermission, QueuedPrompt, TurnState, TurnStatus,
} from '../generated/state'

/** Counts the changes of a row or a terminal, so that a view knows when to draw it again. */
interface Drawn { version: number }

/** `until` is when the last piece came, in seconds. */
export type Spoken = (g.UserEntry | g.AgentEntry | g.ThoughtEntry) & Drawn & { until: number }
export type ToolCall = g.ToolCall & Drawn
export type PlanEntry = g.PlanEntry & Drawn
export type NoticeEntry = g.NoticeEntry & Drawn
export type CompactionEntry = g.CompactionEntry & Drawn
export type PeerMessageEntry = g.PeerMessageEntry & Drawn
export type ResetEntry = g.ResetEntry & Drawn
export type ErrorEntry = g.ErrorEntry & Drawn
export type UnknownEntry = g.UnknownEntry & Drawn

export type Entry =
  | Spoken | ToolCall | PlanEntry | NoticeEntry | CompactionEntry
  | PeerMessageEntry | ResetEntry | ErrorEntry | UnknownEntry

/** `dropped` is the number of characters that were cut off before `output`. */
export type Terminal = Omit<g.Terminal, 'pieces' | 'size'> & Drawn & { output: string; dropped: number }

/** Its thread is a state of its own; questions and subagents are with the session's. */
export type Subagent = Omit<g.Subagent, 'thread'> & Drawn & { thread: SessionState }

type Keyed = 'entries' | 'terminals' | 'pending' | 'subagents' | 'places'

export interface SessionState extends Omit<g.SessionState, Keyed> {
  /** The newest; `entriesBefore` older ones are not here. */
  entries: Entry[]
  terminals: Map<string, Terminal>
  pending: Map<string, g.Pending>
  subagents: Map<string, Subagent>
  /** The positions, in the whole thread, of the entries that later events change, by their ids. */
  places: Map<string, number>
}

export function newState(): SessionState {
  return {
    ...newSessionState(),
    entries: [], terminals: new Map(), pending: new Map(), subagents: new Map(), places: new Map(),
  }
}

export function newTerminal(id: string): Terminal {
  const { pieces: _, size: _size, ...fields } = defaultTerminal()
  return { ...fields, id, output: '', dropped: 0, version: 0 }
}

export function newSubagent(id: string): Subagent {
  return { ...defaultSubagent(), sessionId: id, thread: newState(), version: 0 }
}

/** Whether it works or waits for an answer, as far as the agent says. */
export function subagentAtWork({ state }: Subagent): boolean {
  return state?.state === 'running' || state?.state === 'requires_action'
}

export const isOver = (status: g.TurnStatus): status is g.Ending => ENDINGS.has(status)

/** The entry that `places` has under this key, if it is here. */
export function placed(state: SessionState, key: string): Entry | undefined {
  const place = (state.places.get(key) ?? -1) - state.entriesBefore
  return place < 0 ? undefined : state.entries[place]
}

/** How many entries the whole thread has. */
export function entryCount(state: SessionState): number {
  return state.entriesBefore + state.entries.length
}

/** The turn that runs now, if one does. */
export function runningTurn(state: SessionState): g.TurnState | null {
  const last = state.turns.at(-1)
  return last !== undefined && !isOver(last.status) ? last : null
}

/** The newest plan that has something in it: one that was removed has not. */
export function currentPlan(state: SessionState): PlanEntry | null {
  for (let at = state.entries.length - 1; at >= 0; at--) {
    const entry = state.entries[at]
    if (entry?.type === 'plan' && (entry.steps.length || entry.markdown || entry.uri)) return entry
  }
  return null
}

export type UnderWay = 'now' | 'unfinished' | 'failed'

/** Whether the agent does something: in a turn, or on its own. */
export function isAtWork(state: SessionState): boolean {
  return runningTurn(state) !== null || state.activity !== 'idle' || state.background.length > 0
}

/** What has become of the step of a plan that is marked as begun. */
export function stepUnderWay(state: SessionState, plan: PlanEntry): UnderWay {
  if (currentPlan(state) !== plan) return 'unfinished'
  if (isAtWork(state)) return 'now'
  const ending = state.turns.at(-1)?.status
  return ending === 'failed' || ending === 'interrupted' ? 'failed' : 'unfinished'
}

/** A message as content, neighbouring text joined. */
export function contentOf(entry: Spoken): Content[] {
  const parts: Content[] = []
  let words: string | null = null
  const flush = () => {
    if (words !== null) parts.push({ type: 'text', text: words })
    words = null
  }
  for (const piece of entry.pieces) {
    if (typeof piece === 'string') {
      words = (words ?? '') + piece
      continue
    }
    flush()
    parts.push(piece)
  }
  flush()
  return parts
}

/** The words of an entry, for finding and copying. */
export function entryText(entry: Entry): string {
  switch (entry.type) {
    case 'user':
    case 'agent':
    case 'thought':
      return entry.pieces.map((p) => (typeof p === 'string' ? p : textOf(p))).join('')
    case 'tool_call':
      return [entry.title, ...entry.content.map(toolText)].filter(Boolean).join('\n')
    case 'plan':
      return entry.markdown ?? entry.steps.map((step) => step.content).join('\n')
    case 'notice':
      return entry.description === null ? entry.title : `${entry.title}: ${entry.description}`
    case 'compaction':
      return entry.summary.map(textOf).join('')
    case 'peer_message':
      return entry.content.map(textOf).join('')
    case 'error':
      return entry.message
    case 'reset':
    case 'unknown':
      return ''
  }
}

function toolText(item: ToolContent): string {
  if (item.type === 'content') return textOf(item.content)
  return item.type === 'diff' ? `${item.path}\n${item.newText}` : ''
}

// What a session is at one moment: the ordered entries of its thread and the facts around them.
// Made by `reduce` and `hydrate` alone; everybody else reads it. `version` counts the changes of a
// row or a terminal, so that a view can tell whether it has to draw again.

import { LIMITS } from './bounds'
import type { Content, Json, Location, ToolContent } from './content'
import { textOf } from './content'
import type { Continuity } from './events'
import type {
  Command, ConfigOption, ContextUsage, Modes, PermissionOption, PlanStep, TokenUsage,
} from './facts'

export const TERMINAL_TAIL = LIMITS.tail

interface Row {
  seq: number
  at: number
  turn_id: string | null
  version: number
  /** What is kept of it weighs so much, and what is not weighed so much. */
  size: number
  cut: number
}

export interface Spoken extends Row {
  type: 'user' | 'agent' | 'thought'
  /** Plain text as strings, everything else as content. */
  pieces: (string | Content)[]
  message_id: string | null
  /** When the last piece came, in seconds. */
  until: number
}
export interface ToolCall extends Row {
  type: 'tool_call'
  id: string
  title: string
  name: string | null
  kind: string
  status: string
  content: ToolContent[]
  locations: Location[]
  raw_input: unknown
  raw_output: unknown
  meta: Json | null
  cancellable: boolean
}
export interface PlanEntry extends Row {
  type: 'plan'
  plan_id: string
  steps: PlanStep[]
  markdown: string | null
  uri: string | null
}
export interface NoticeEntry extends Row {
  type: 'notice'
  title: string
  severity: string
  description: string | null
  source: 'agent' | 'client'
}
export interface CompactionEntry extends Row {
  type: 'compaction'
  id: string
  status: string
  summary: Content[]
  error: string | null
}
export interface PeerMessageEntry extends Row {
  type: 'peer_message'
  id: string
  content: Content[]
  sender_session_id: string | null
  recipient_session_id: string | null
  sender_message_id: string | null
  recipient_message_id: string | null
}
export interface ResetEntry extends Row { type: 'reset' }
export interface ErrorEntry extends Row { type: 'error'; message: string }
export interface UnknownEntry extends Row { type: 'unknown'; kind: string; raw: string }

export type Entry =
  | Spoken | ToolCall | PlanEntry | NoticeEntry | CompactionEntry
  | PeerMessageEntry | ResetEntry | ErrorEntry | UnknownEntry

export interface Terminal {
  id: string
  argv: string[]
  cwd: string
  output: string
  /** How many characters were cut off before `output`. */
  dropped: number
  running: boolean
  exit_code: number | null
  signal: string | null
  released: boolean
  /** The line that runs in one of the agent's own. */
  command: string
  cancellable: boolean
  version: number
}

export interface PendingPermission {
  kind: 'permission'
  id: string
  options: PermissionOption[]
  title: string
  tool_call_id: string | null
  operation: string
  paths: string[]
  argv: string[] | null
  content: ToolContent[]
  description: string | null
  /** What the agent says about it, beside its title. */
  explanation: string | null
  /** The agent would do it itself: what stands here is its word for it. */
  claimed: boolean
  /** The folder a command would run in; null where there is no command. */
  cwd: string | null
  /** The names of the variables that are set for a command. */
  env: string[]
}
export interface PendingElicitation {
  kind: 'elicitation'
  id: string
  message: string
  mode: string
  schema: Json | null
  url: string | null
  elicitation_id: string | null
  tool_call_id: string | null
}
export type Pending = PendingPermission | PendingElicitation

export interface Subagent {
  session_id: string
  title: string | null
  description: string | null
  state: Json | null
  cwd: string | null
  additional_directories: string[] | null
  capabilities: Json | null
  /** When it was begun: it stands in the thread behind what came before. */
  seq: number
  at: number
}

export interface QueuedPrompt { id: string; content: Content[] }

export type Ending = 'completed' | 'cancelled' | 'failed' | 'interrupted'
export type TurnStatus = 'prompting' | 'streaming' | 'waiting' | 'cancelling' | Ending

const ENDINGS: ReadonlySet<string> = new Set<Ending>(['completed', 'cancelled', 'failed', 'interrupted'])

export const isOver = (status: TurnStatus): status is Ending => ENDINGS.has(status)

export interface TurnState {
  id: string
  status: TurnStatus
  stop_reason: string | null
  usage: TokenUsage | null
  error: string | null
  /** The number of the event that began it. */
  seq: number
}

export interface SessionState {
  session_id: string
  agent: string
  cwd: string
  additional_directories: string[]
  continuity: Continuity
  open: boolean
  title: string | null
  updated_at: string | null
  /** The newest; `entries_before` older ones are not here. */
  entries: Entry[]
  entries_before: number
  turns: TurnState[]
  modes: Modes | null
  config_options: ConfigOption[]
  commands: Command[]
  usage: ContextUsage | null
  terminals: Map<string, Terminal>
  pending: Map<string, Pending>
  subagents: Map<string, Subagent>
  queue: QueuedPrompt[]
  /** What the agent does outside of turns, and what it says runs on. */
  activity: string
  background: Json[]
  last_seq: number
  /** What the entries weigh together, and how much all terminals printed. */
  size: number
  printed: number
  /** Where in the whole thread the entries stand that later events change, by their ids. */
  places: Map<string, number>
}

export function newState(): SessionState {
  return {
    session_id: '', agent: '', cwd: '', additional_directories: [], continuity: 'new', open: false,
    title: null, updated_at: null, entries: [], entries_before: 0, turns: [], modes: null, config_options: [],
    commands: [], usage: null, terminals: new Map(), pending: new Map(), subagents: new Map(),
    queue: [], activity: 'idle', background: [], last_seq: 0, size: 0, printed: 0, places: new Map(),
  }
}

export function newTerminal(id: string): Terminal {
  return {
    id, argv: [], cwd: '', output: '', dropped: 0, running: true,
    exit_code: null, signal: null, released: false, command: '', cancellable: false, version: 0,
  }
}

/** The entry that `places` has under this key, if it is here. */
export function placed(state: SessionState, key: string): Entry | undefined {
  const place = (state.places.get(key) ?? -1) - state.entries_before
  return place < 0 ? undefined : state.entries[place]
}

/** How many entries the whole thread has. */
export function entryCount(state: SessionState): number {
  return state.entries_before + state.entries.length
}

/** The turn that runs now, if one does. */
export function runningTurn(state: SessionState): TurnState | null {
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
  return item.type === 'diff' ? `${item.path}\n${item.new_text}` : ''
}

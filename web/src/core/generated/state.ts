// Generated from src/dragoman/session/state.py by `make gen`: do not edit.

import type { Content, Json, Location, ToolContent } from './content'
import type {
  BackgroundWork, Command, ConfigOption, ContextUsage, Continuity, Modes, Parking, PermissionOffer,
  PermissionOption, PlanStep, ProgramRun, ReachedLimit, SteerOutcome, SteerStage, SubagentState,
  TokenUsage, TurnTerms,
} from './facts'
import type { WorkspaceSnapshot } from './events'

export interface Entry {
  seq: number
  at: number
  turnId: string | null
  size: number
  cut: number
}

export interface Spoken extends Entry {
  pieces: (string | Content)[]
  messageId: string | null
}

export interface UserEntry extends Spoken {
  type: 'user'
  reported: boolean
  steer: SteerOutcome | null
  reason: string
}

export interface AgentEntry extends Spoken {
  type: 'agent'
}

export interface ThoughtEntry extends Spoken {
  type: 'thought'
}

export interface ToolCall extends Entry {
  type: 'tool_call'
  id: string
  title: string
  name: string | null
  kind: string
  status: string
  content: ToolContent[]
  locations: Location[]
  rawInput: unknown
  rawOutput: unknown
  meta: Json | null
  cancellable: boolean
}

export interface PlanEntry extends Entry {
  type: 'plan'
  planId: string
  steps: PlanStep[]
  markdown: string | null
  uri: string | null
}

export interface NoticeEntry extends Entry {
  type: 'notice'
  title: string
  severity: string
  description: string | null
  source: 'agent' | 'client'
}

export interface CompactionEntry extends Entry {
  type: 'compaction'
  id: string
  status: string
  summary: Content[]
  error: string | null
}

export interface PeerMessageEntry extends Entry {
  type: 'peer_message'
  id: string
  content: Content[]
  senderSessionId: string | null
  recipientSessionId: string | null
  senderMessageId: string | null
  recipientMessageId: string | null
}

export interface ResetEntry extends Entry {
  type: 'reset'
}

export interface ErrorEntry extends Entry {
  type: 'error'
  message: string
}

export interface UnknownEntry extends Entry {
  type: 'unknown'
  kind: string
  raw: string
}

export interface Terminal {
  id: string
  argv: string[]
  cwd: string
  pieces: string[]
  size: number
  running: boolean
  exitCode: number | null
  signal: string | null
  released: boolean
  command: string
  cancellable: boolean
  subagent: string | null
}

export interface PendingPermission {
  kind: 'permission'
  id: string
  options: PermissionOption[]
  title: string
  toolCallId: string | null
  operation: string
  paths: string[]
  argv: string[] | null
  content: ToolContent[]
  always: string | null
  explanation: string | null
  claimed: boolean
  cwd: string | null
  env: string[]
  offers: PermissionOffer[]
  danger: string | null
  sameAs: string | null
  subagent: string | null
  askedBy: string | null
}

export interface PendingElicitation {
  kind: 'elicitation'
  id: string
  message: string
  mode: string
  schema: Json | null
  url: string | null
  elicitationId: string | null
  toolCallId: string | null
  subagent: string | null
  askedBy: string | null
  limit: ReachedLimit | null
}

export interface Subagent {
  sessionId: string
  title: string | null
  description: string | null
  state: SubagentState | null
  cwd: string | null
  additionalDirectories: string[] | null
  capabilities: Json | null
  seq: number
  at: number
  parent: string | null
  toolCallId: string | null
  thread: SessionState
}

export interface QueuedPrompt {
  id: string
  content: Content[]
  terms: TurnTerms | null
  steer: SteerStage | null
}

export interface TurnState {
  id: string
  status: TurnStatus
  stopReason: string | null
  usage: TokenUsage | null
  error: string | null
  seq: number
}

export interface SessionState {
  sessionId: string
  agent: string
  cwd: string
  additionalDirectories: string[]
  continuity: Continuity
  fence: string | null
  network: string[] | null
  open: boolean
  title: string | null
  updatedAt: string | null
  entries: AnyEntry[]
  entriesBefore: number
  turns: TurnState[]
  modes: Modes | null
  configOptions: ConfigOption[]
  commands: Command[]
  usage: ContextUsage | null
  terminals: Record<string, Terminal>
  pending: Record<string, Pending>
  subagents: Record<string, Subagent>
  queue: QueuedPrompt[]
  parked: Parking | null
  activity: string
  background: BackgroundWork[]
  snapshot: WorkspaceSnapshot | null
  programs: ProgramRun[]
  programsBefore: number
  lastSeq: number
  size: number
  printed: number
  subagentsSize: number
  places: Record<string, number>
}

export type AnyEntry =
  | UserEntry | AgentEntry | ThoughtEntry | ToolCall | PlanEntry | NoticeEntry | CompactionEntry
  | PeerMessageEntry | ResetEntry | ErrorEntry | UnknownEntry

export type Pending = PendingPermission | PendingElicitation

export type Ending = 'completed' | 'cancelled' | 'failed' | 'interrupted'

export type TurnStatus = 'prompting' | 'streaming' | 'waiting' | 'cancelling' | Ending

export const newUserEntry = (): UserEntry => ({
  type: 'user', pieces: [], messageId: null, reported: false, steer: null, reason: '', seq: 0,
  at: 0, turnId: null, size: 0, cut: 0,
})

export const newAgentEntry = (): AgentEntry => ({
  type: 'agent', pieces: [], messageId: null, seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newThoughtEntry = (): ThoughtEntry => ({
  type: 'thought', pieces: [], messageId: null, seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newToolCall = (): Omit<ToolCall, 'id'> => ({
  type: 'tool_call', title: '', name: null, kind: 'other', status: 'pending', content: [],
  locations: [], rawInput: null, rawOutput: null, meta: null, cancellable: false, seq: 0, at: 0,
  turnId: null, size: 0, cut: 0,
})

export const newPlanEntry = (): PlanEntry => ({
  type: 'plan', planId: '', steps: [], markdown: null, uri: null, seq: 0, at: 0, turnId: null,
  size: 0, cut: 0,
})

export const newNoticeEntry = (): Omit<NoticeEntry, 'title'> => ({
  type: 'notice', severity: 'info', description: null, source: 'agent', seq: 0, at: 0, turnId: null,
  size: 0, cut: 0,
})

export const newCompactionEntry = (): Omit<CompactionEntry, 'id'> => ({
  type: 'compaction', status: 'in_progress', summary: [], error: null, seq: 0, at: 0, turnId: null,
  size: 0, cut: 0,
})

export const newPeerMessageEntry = (): Omit<PeerMessageEntry, 'id'> => ({
  type: 'peer_message', content: [], senderSessionId: null, recipientSessionId: null,
  senderMessageId: null, recipientMessageId: null, seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newResetEntry = (): ResetEntry => ({
  type: 'reset', seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newErrorEntry = (): Omit<ErrorEntry, 'message'> => ({
  type: 'error', seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newUnknownEntry = (): Omit<UnknownEntry, 'kind' | 'raw'> => ({
  type: 'unknown', seq: 0, at: 0, turnId: null, size: 0, cut: 0,
})

export const newTerminal = (): Omit<Terminal, 'id'> => ({
  argv: [], cwd: '', pieces: [], size: 0, running: true, exitCode: null, signal: null,
  released: false, command: '', cancellable: false, subagent: null,
})

export const newPendingPermission = (): Omit<PendingPermission, 'id' | 'options'> => ({
  kind: 'permission', title: '', toolCallId: null, operation: 'other', paths: [], argv: null,
  content: [], always: null, explanation: null, claimed: false, cwd: null, env: [], offers: [],
  danger: null, sameAs: null, subagent: null, askedBy: null,
})

export const newPendingElicitation = (): Omit<PendingElicitation, 'id' | 'message' | 'mode'> => ({
  kind: 'elicitation', schema: null, url: null, elicitationId: null, toolCallId: null,
  subagent: null, askedBy: null, limit: null,
})

export const newSubagent = (): Omit<Subagent, 'sessionId'> => ({
  title: null, description: null, state: null, cwd: null, additionalDirectories: null,
  capabilities: null, seq: 0, at: 0, parent: null, toolCallId: null, thread: newSessionState(),
})

export const newQueuedPrompt = (): Omit<QueuedPrompt, 'id' | 'content'> => ({
  terms: null, steer: null,
})

export const newTurnState = (): Omit<TurnState, 'id'> => ({
  status: 'prompting', stopReason: null, usage: null, error: null, seq: 0,
})

export const newSessionState = (): SessionState => ({
  sessionId: '', agent: '', cwd: '', additionalDirectories: [], continuity: 'new', fence: null,
  network: null, open: false, title: null, updatedAt: null, entries: [], entriesBefore: 0,
  turns: [], modes: null, configOptions: [], commands: [], usage: null, terminals: {}, pending: {},
  subagents: {}, queue: [], parked: null, activity: 'idle', background: [], snapshot: null,
  programs: [], programsBefore: 0, lastSeq: 0, size: 0, printed: 0, subagentsSize: 0, places: {},
})

export const NEW_ENTRIES = {
  user: newUserEntry, agent: newAgentEntry, thought: newThoughtEntry, tool_call: newToolCall,
  plan: newPlanEntry, notice: newNoticeEntry, compaction: newCompactionEntry,
  peer_message: newPeerMessageEntry, reset: newResetEntry, error: newErrorEntry,
  unknown: newUnknownEntry,
}

export const NEW_PENDING = {
  permission: newPendingPermission, elicitation: newPendingElicitation,
}

export const OPEN_STATUSES: ReadonlySet<string> = new Set([
  'in_progress', 'pending',
])

export const ENDINGS: ReadonlySet<string> = new Set([
  'cancelled', 'completed', 'failed', 'interrupted',
])

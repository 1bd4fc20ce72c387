// Generated from src/dragoman/session/events.py by `make gen`: do not edit.

import type { Content, Json, Location, ToolContent } from './content'
import type {
  BackgroundWork, Command, ConfigOption, Continuity, Cost, Decision, FileSummary, LimitKind, Mode,
  Moment, Parking, ParkingOutcome, PermissionOffer, PermissionOption, PlanStep, ProgramEnd,
  ProgramRun, ReachedLimit, RootSnapshot, SteerOutcome, SteerStage, SteerWay, SubagentState,
  TokenUsage, TurnTerms,
} from './facts'

export interface Recorded {
  seq?: number
  at?: number
  replay?: boolean
  meta?: Json | null
}

export interface FromAgent extends Recorded {}

export interface SessionOpened extends Recorded {
  type: 'session_opened'
  sessionId: string
  cwd: string
  continuity: Continuity
  additionalDirectories?: string[]
  agent?: string
  fence?: string | null
  network?: string[] | null
}

export interface SessionClosed extends Recorded {
  type: 'session_closed'
  reason?: string
}

export interface TurnStarted extends Recorded {
  type: 'turn_started'
  turnId: string
  content: Content[]
  terms?: TurnTerms | null
}

export interface TurnCancelling extends Recorded {
  type: 'turn_cancelling'
  turnId: string
}

export interface TurnEnded extends Recorded {
  type: 'turn_ended'
  turnId: string
  stopReason?: string | null
  usage?: TokenUsage | null
  error?: string | null
  interrupted?: boolean
}

export interface Message extends FromAgent {
  content: Content
  messageId?: string | null
  replaces?: boolean
}

export interface UserMessage extends Message {
  type: 'user_message'
}

export interface AgentMessage extends Message {
  type: 'agent_message'
}

export interface AgentThought extends Message {
  type: 'agent_thought'
}

export interface ToolCallUpdated extends FromAgent {
  type: 'tool_call'
  toolCallId: string
  title?: string | null
  name?: string | null
  kind?: string | null
  status?: string | null
  content?: ToolContent[] | null
  locations?: Location[] | null
  rawInput?: unknown
  rawOutput?: unknown
  more?: ToolContent[]
  cancellable?: boolean
  forgetsMeta?: boolean
}

export interface PlanUpdated extends FromAgent {
  type: 'plan'
  steps?: PlanStep[]
  planId?: string
  markdown?: string | null
  uri?: string | null
}

export interface PlanRemoved extends FromAgent {
  type: 'plan_removed'
  planId: string
}

export interface CommandsChanged extends FromAgent {
  type: 'commands'
  commands: Command[]
}

export interface ModeChanged extends FromAgent {
  type: 'mode'
  modeId: string
  available?: Mode[] | null
}

export interface ConfigChanged extends FromAgent {
  type: 'config'
  options: ConfigOption[]
}

export interface InfoChanged extends FromAgent {
  type: 'info'
  title?: string | null
  updatedAt?: string | null
}

export interface UsageChanged extends FromAgent {
  type: 'usage'
  used: number
  size: number
  cost?: Cost | null
}

export interface Notice extends Recorded {
  type: 'notice'
  title: string
  severity?: string
  description?: string | null
  source?: 'agent' | 'client'
}

export interface LimitReached extends Omit<Notice, 'type'> {
  type: 'limit_reached'
  limit: ReachedLimit
}

export interface TurnLimited extends Omit<Notice, 'type'> {
  type: 'turn_limited'
  turnId: string
  kind: LimitKind
  endsAt?: number | null
  parked?: Parking | null
}

export interface ParkingChanged extends Omit<Notice, 'type'> {
  type: 'parking_changed'
  parkingId: string
  outcome: ParkingOutcome
  resumesAt?: number | null
  turnId?: string | null
  sessionId?: string | null
}

export interface CompactionUpdated extends FromAgent {
  type: 'compaction'
  compactionId: string
  status: string
  summary?: Content[] | null
  error?: string | null
}

export interface CompactionSummary extends FromAgent {
  type: 'compaction_summary'
  compactionId: string
  content: Content
}

export interface SubagentUpdated extends FromAgent {
  type: 'subagent'
  sessionId: string
  title?: string | null
  description?: string | null
  state?: SubagentState | null
  cwd?: string | null
  additionalDirectories?: string[] | null
  capabilities?: Json | null
  parent?: string | null
  toolCallId?: string | null
}

export interface SubagentEvent extends FromAgent {
  type: 'subagent_event'
  sessionId: string
  event: Event
}

export interface PeerMessageUpdated extends FromAgent {
  type: 'peer_message'
  messageId: string
  senderSessionId?: string | null
  recipientSessionId?: string | null
  senderMessageId?: string | null
  recipientMessageId?: string | null
  content?: Content[] | null
}

export interface PeerMessageChunk extends FromAgent {
  type: 'peer_message_chunk'
  messageId: string
  content: Content
}

export interface ActivityChanged extends Recorded {
  type: 'activity'
  activity?: string
  background?: BackgroundWork[]
}

export interface UnknownUpdate extends FromAgent {
  type: 'unknown'
  kind: string
  raw: string
}

export interface PermissionRequested {
  type: 'permission_requested'
  requestId: string
  options: PermissionOption[]
  title?: string
  toolCallId?: string | null
  operation?: string
  paths?: string[]
  argv?: string[] | null
  content?: ToolContent[]
  always?: string | null
  explanation?: string | null
  claimed?: boolean
  cwd?: string | null
  env?: string[]
  offers?: PermissionOffer[]
  danger?: string | null
  sameAs?: string | null
  subagent?: string | null
  askedBy?: string | null
  seq?: number
  at?: number
  replay?: boolean
  meta?: Json | null
  description?: string | null
}

export interface PermissionSettled extends Recorded {
  type: 'permission_settled'
  requestId: string
  optionId: string | null
  decision: Decision
}

export interface AccessDecided extends Recorded {
  type: 'access'
  operation: string
  decision: Decision
  paths?: string[]
  argv?: string[] | null
  title?: string
  toolCallId?: string | null
  optionId?: string | null
  subagent?: string | null
  host?: string | null
}

export interface ElicitationRequested {
  type: 'elicitation_requested'
  requestId: string
  message: string
  mode: string
  schema?: Json | null
  url?: string | null
  elicitationId?: string | null
  toolCallId?: string | null
  subagent?: string | null
  askedBy?: string | null
  limit?: ReachedLimit | null
  seq?: number
  at?: number
  replay?: boolean
  meta?: Json | null
}

export interface ElicitationSettled extends Recorded {
  type: 'elicitation_settled'
  requestId: string
  action: string
}

export interface TerminalStarted extends Recorded {
  type: 'terminal_started'
  terminalId: string
  argv: string[]
  cwd?: string
  command?: string
  cancellable?: boolean
  subagent?: string | null
}

export interface TerminalOutput extends Recorded {
  type: 'terminal_output'
  terminalId: string
  data: string
  replaces?: boolean
}

export interface TerminalExited extends Recorded {
  type: 'terminal_exited'
  terminalId: string
  exitCode?: number | null
  signal?: string | null
}

export interface TerminalReleased extends Recorded {
  type: 'terminal_released'
  terminalId: string
}

export interface FileWritten extends Recorded {
  type: 'file_written'
  path: string
  after: string
  before?: string | null
  created?: boolean
  imported?: boolean
  subagent?: string | null
}

export interface FileReverted extends Recorded {
  type: 'file_reverted'
  path: string
  turnId?: string | null
  restoreId?: string | null
}

export interface WorkspaceSnapshot extends Recorded {
  type: 'workspace_snapshot'
  moment: Moment
  stepId: string
  roots: RootSnapshot[]
  files?: FileSummary[]
  fileCount?: number
  doubt?: string
}

export interface ProgramsRan extends Recorded {
  type: 'programs_ran'
  programs?: ProgramRun[]
  ended?: ProgramEnd[]
  leftOut?: number
}

export interface PromptQueued extends Recorded {
  type: 'prompt_queued'
  queueId: string
  content: Content[]
  terms?: TurnTerms | null
  steer?: SteerStage | null
}

export interface PromptUnqueued extends Recorded {
  type: 'prompt_unqueued'
  queueId: string
  dropped?: boolean
}

export interface Steered extends Recorded {
  type: 'steered'
  queueId: string
  outcome: SteerOutcome
  way?: SteerWay | null
  content?: Content[]
  reason?: string
  turnId?: string | null
}

export type _Turns = SessionOpened | SessionClosed | TurnStarted | TurnCancelling | TurnEnded

export type _Told = UserMessage | AgentMessage | AgentThought | ToolCallUpdated | PlanUpdated

export type _Facts = PlanRemoved | CommandsChanged | ModeChanged | ConfigChanged | InfoChanged

export type _Reports = UsageChanged | Notice | LimitReached | TurnLimited | ParkingChanged

export type _Compactions = CompactionUpdated | CompactionSummary | SubagentUpdated | SubagentEvent

export type _Others = PeerMessageUpdated | PeerMessageChunk | ActivityChanged | UnknownUpdate

export type _Permissions = PermissionRequested | PermissionSettled | AccessDecided

export type _Forms = ElicitationRequested | ElicitationSettled

export type _Terminals = TerminalStarted | TerminalOutput | TerminalExited | TerminalReleased

export type _Files = FileWritten | FileReverted | WorkspaceSnapshot | ProgramsRan

export type _Queue = PromptQueued | PromptUnqueued | Steered

export type Event =
  | _Turns | _Told | _Facts | _Reports | _Compactions | _Others | _Terminals | _Files | _Permissions
  | _Queue | _Forms

export const FROM_AGENT: ReadonlySet<string> = new Set([
  'agent_message', 'agent_thought', 'commands', 'compaction', 'compaction_summary', 'config',
  'info', 'mode', 'peer_message', 'peer_message_chunk', 'plan', 'plan_removed', 'subagent',
  'subagent_event', 'tool_call', 'unknown', 'usage', 'user_message',
])

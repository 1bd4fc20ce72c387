// Generated from src/dragoman/session/events.py by `make gen`: do not edit.

import type { Content, Json, Location, ToolContent } from './content'
import type {
  BackgroundWork, Command, ConfigOption, Cost, Decision, Mode, PermissionOption, PlanStep,
  SubagentState, TokenUsage,
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
  session_id: string
  cwd: string
  continuity: Continuity
  additional_directories?: string[]
  agent?: string
}

export interface SessionClosed extends Recorded {
  type: 'session_closed'
  reason?: string
}

export interface TurnStarted extends Recorded {
  type: 'turn_started'
  turn_id: string
  content: Content[]
}

export interface TurnCancelling extends Recorded {
  type: 'turn_cancelling'
  turn_id: string
}

export interface TurnEnded extends Recorded {
  type: 'turn_ended'
  turn_id: string
  stop_reason?: string | null
  usage?: TokenUsage | null
  error?: string | null
  interrupted?: boolean
}

export interface Message extends FromAgent {
  content: Content
  message_id?: string | null
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
  tool_call_id: string
  title?: string | null
  name?: string | null
  kind?: string | null
  status?: string | null
  content?: ToolContent[] | null
  locations?: Location[] | null
  raw_input?: unknown
  raw_output?: unknown
  more?: ToolContent[]
  cancellable?: boolean
  forgets_meta?: boolean
}

export interface PlanUpdated extends FromAgent {
  type: 'plan'
  steps?: PlanStep[]
  plan_id?: string
  markdown?: string | null
  uri?: string | null
}

export interface PlanRemoved extends FromAgent {
  type: 'plan_removed'
  plan_id: string
}

export interface CommandsChanged extends FromAgent {
  type: 'commands'
  commands: Command[]
}

export interface ModeChanged extends FromAgent {
  type: 'mode'
  mode_id: string
  available?: Mode[] | null
}

export interface ConfigChanged extends FromAgent {
  type: 'config'
  options: ConfigOption[]
}

export interface InfoChanged extends FromAgent {
  type: 'info'
  title?: string | null
  updated_at?: string | null
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

export interface CompactionUpdated extends FromAgent {
  type: 'compaction'
  compaction_id: string
  status: string
  summary?: Content[] | null
  error?: string | null
}

export interface CompactionSummary extends FromAgent {
  type: 'compaction_summary'
  compaction_id: string
  content: Content
}

export interface SubagentUpdated extends FromAgent {
  type: 'subagent'
  session_id: string
  title?: string | null
  description?: string | null
  state?: SubagentState | null
  cwd?: string | null
  additional_directories?: string[] | null
  capabilities?: Json | null
}

export interface PeerMessageUpdated extends FromAgent {
  type: 'peer_message'
  message_id: string
  sender_session_id?: string | null
  recipient_session_id?: string | null
  sender_message_id?: string | null
  recipient_message_id?: string | null
  content?: Content[] | null
}

export interface PeerMessageChunk extends FromAgent {
  type: 'peer_message_chunk'
  message_id: string
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
  request_id: string
  options: PermissionOption[]
  title?: string
  tool_call_id?: string | null
  operation?: string
  paths?: string[]
  argv?: string[] | null
  content?: ToolContent[]
  always?: string | null
  explanation?: string | null
  claimed?: boolean
  cwd?: string | null
  env?: string[]
  seq?: number
  at?: number
  replay?: boolean
  meta?: Json | null
  description?: string | null
}

export interface PermissionSettled extends Recorded {
  type: 'permission_settled'
  request_id: string
  option_id: string | null
  decision: Decision
}

export interface AccessDecided extends Recorded {
  type: 'access'
  operation: string
  decision: Decision
  paths?: string[]
  argv?: string[] | null
  title?: string
  tool_call_id?: string | null
  option_id?: string | null
}

export interface ElicitationRequested {
  type: 'elicitation_requested'
  request_id: string
  message: string
  mode: string
  schema?: Json | null
  url?: string | null
  elicitation_id?: string | null
  tool_call_id?: string | null
  seq?: number
  at?: number
  replay?: boolean
  meta?: Json | null
}

export interface ElicitationSettled extends Recorded {
  type: 'elicitation_settled'
  request_id: string
  action: string
}

export interface TerminalStarted extends Recorded {
  type: 'terminal_started'
  terminal_id: string
  argv: string[]
  cwd?: string
  command?: string
  cancellable?: boolean
}

export interface TerminalOutput extends Recorded {
  type: 'terminal_output'
  terminal_id: string
  data: string
  replaces?: boolean
}

export interface TerminalExited extends Recorded {
  type: 'terminal_exited'
  terminal_id: string
  exit_code?: number | null
  signal?: string | null
}

export interface TerminalReleased extends Recorded {
  type: 'terminal_released'
  terminal_id: string
}

export interface FileWritten extends Recorded {
  type: 'file_written'
  path: string
  after: string
  before?: string | null
  created?: boolean
  imported?: boolean
}

export interface FileReverted extends Recorded {
  type: 'file_reverted'
  path: string
  turn_id?: string | null
}

export interface PromptQueued extends Recorded {
  type: 'prompt_queued'
  queue_id: string
  content: Content[]
}

export interface PromptUnqueued extends Recorded {
  type: 'prompt_unqueued'
  queue_id: string
  dropped?: boolean
}

export type Continuity = 'new' | 'continued' | 'replayed' | 'reset'

export type Event =
  | SessionOpened | SessionClosed | TurnStarted | TurnCancelling | TurnEnded | UserMessage
  | AgentMessage | AgentThought | ToolCallUpdated | PlanUpdated | PlanRemoved | CommandsChanged
  | ModeChanged | ConfigChanged | InfoChanged | UsageChanged | Notice | CompactionUpdated
  | CompactionSummary | SubagentUpdated | PeerMessageUpdated | PeerMessageChunk | ActivityChanged
  | UnknownUpdate | PermissionRequested | PermissionSettled | AccessDecided | ElicitationRequested
  | ElicitationSettled | TerminalStarted | TerminalOutput | TerminalExited | TerminalReleased
  | FileWritten | FileReverted | PromptQueued | PromptUnqueued

export const FROM_AGENT: ReadonlySet<string> = new Set([
  'agent_message', 'agent_thought', 'commands', 'compaction', 'compaction_summary', 'config',
  'info', 'mode', 'peer_message', 'peer_message_chunk', 'plan', 'plan_removed', 'subagent',
  'tool_call', 'unknown', 'usage', 'user_message',
])

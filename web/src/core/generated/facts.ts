// Generated from src/dragoman/session/facts.py by `make gen`: do not edit.

import type { Content, Json, ToolContent } from './content'

export interface Offer {
  files: boolean
  terminals: boolean
  fence: FenceMode
}

export interface SystemPrompt {
  text: string
  mode?: 'append' | 'override'
}

export interface Fact {
  meta?: Json | null
}

export interface Mode extends Fact {
  id: string
  name: string
  description?: string | null
}

export interface Modes extends Fact {
  current: string
  available: Mode[]
}

export interface ConfigChoice extends Fact {
  value: string
  name: string
  description?: string | null
  group?: string | null
}

export interface ConfigOption extends Fact {
  id: string
  name: string
  value: string | boolean
  choices?: ConfigChoice[] | null
  description?: string | null
  category?: string | null
  kind?: string | null
}

export interface Command extends Fact {
  name: string
  description?: string
  hint?: string | null
}

export interface PlanStep extends Fact {
  content: string
  priority?: string
  status?: string
}

export interface Cost extends Fact {
  amount: number
  currency: string
}

export interface ContextUsage extends Fact {
  used: number
  size: number
  cost?: Cost | null
}

export interface ModelTokens extends Fact {
  model: string
  total: number
  input: number
  output: number
  thought?: number | null
  cachedRead?: number | null
  cachedWrite?: number | null
}

export interface TokenUsage extends Fact {
  total: number
  input: number
  output: number
  thought?: number | null
  cachedRead?: number | null
  cachedWrite?: number | null
  counted?: TokensOf
  models?: ModelTokens[] | null
}

export interface BackgroundWork extends Fact {
  type?: string
  terminalId?: string | null
  toolCallId?: string | null
  sessionId?: string | null
}

export interface SubagentState extends Fact {
  state?: string
  stopReason?: string | null
  background?: BackgroundWork[] | null
  usage?: Json | null
  error?: Json | null
}

export interface PermissionOption extends Fact {
  id: string
  name: string
  kind: string
  consequence?: string | null
  words?: string | null
  warning?: string | null
  countsOnce?: boolean
}

export interface PermissionOffer extends Fact {
  id: string
  breadth: string
  scope: string
  subject: string
  words: string
  consequence?: string
  confirm?: boolean
}

export interface PermissionQuestion {
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
}

export interface ElicitationQuestion {
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
}

export interface ReachedLimit extends Fact {
  measure: Measure
  per: LimitScope
  most: number
  value: number
  outcome: LimitOutcome
  turnId: string
  currency?: string
  source?: string
  raisedTo?: number | null
}

export interface TurnTerms extends Fact {
  by: string
  options?: string[]
  rules?: Json[]
  onAsk?: 'reject' | 'wait' | null
  home?: string | null
}

export interface Parking extends Fact {
  id: string
  content: Content[]
  kind: LimitKind
  resumesAt?: number | null
  endsAt?: number | null
  attempt?: number
  repeats?: boolean
  terms?: TurnTerms | null
  isDoubted?: boolean
}

export interface ProgramRun extends Fact {
  id: string
  argv: string[]
  cwd?: string
  parents?: string[]
  count?: number
  exitCode?: number | null
  signal?: string | null
  refused?: string | null
  cut?: boolean
}

export interface ProgramEnd extends Fact {
  id: string
  exitCode?: number | null
  signal?: string | null
}

export interface Decision extends Fact {
  effect: string
  reason: string
  rule?: Json | null
  by?: Decider | null
}

export interface LeftOut {
  path: string
  size?: number
  reason?: string
}

export interface RootSnapshot {
  root: string
  tree?: string | null
  problem?: string
  leftOut?: LeftOut[]
  leftOutCount?: number
  emptyFolders?: string[]
}

export interface FileSummary {
  path: string
  status: FileStatus
  oldPath?: string | null
  added?: number
  removed?: number
  by?: Author[]
}

export type Continuity = 'new' | 'continued' | 'replayed' | 'reset'

export type FenceMode = 'off' | 'on' | 'ask' | 'require'

export type TokensOf = 'turn' | 'session' | 'request'

export type Decider =
  | 'person' | 'rule' | 'default' | 'nobody' | 'cancel' | 'offer' | 'host' | 'fence'

export type SteerStage = 'waiting' | 'sent'

export type SteerOutcome = 'delivered' | 'queued' | 'started' | 'refused' | 'unsure'

export type SteerWay = 'steering' | 'run' | 'pull' | 'prompt' | 'queue'

export type Measure = 'cost' | 'tokens' | 'time' | 'tool_calls' | 'turns'

export type LimitScope = 'turn' | 'session' | 'day' | 'agent' | 'project'

export type LimitOutcome = 'warned' | 'asked' | 'raised' | 'stopped' | 'not_sent' | 'late'

export type OnLimit = 'park' | 'ask' | 'fail'

export type LimitKind = 'rate' | 'overloaded' | 'plan'

export type ParkingOutcome = 'waiting' | 'continued' | 'dropped' | 'handed_over' | 'taken_over'

export type Author = 'host' | 'agent' | 'other' | 'unknown' | 'restore' | 'imported'

export type FileStatus = 'added' | 'deleted' | 'modified' | 'renamed'

export type Moment = 'turn_start' | 'turn_end' | 'restore_start' | 'restore_end'

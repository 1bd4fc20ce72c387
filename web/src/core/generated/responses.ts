// Generated from src/dragoman/web/shapes by `make gen`: do not edit.

import type { Json } from './content'
import type {
  Author, FileStatus, LeftOut, LimitScope, Measure, SteerOutcome, SteerWay,
} from './facts'
import type { Ending } from './state'

export interface OwnerShape {
  label: string
  pid: number
  here: boolean
}

export interface SessionHost {
  name: string
  alive: boolean
  here: boolean
}

export interface Summary {
  id: string
  name: string | null
  title: string | null
  agent: string
  agentSessionId: string | null
  cwd: string
  importedFrom: string | null
  status: Status
  failed: boolean
  lastEnding: Ending | null
  createdAt: string
  updatedAt: string
  archived: boolean
  parent: string | null
  lastSeq: number
  owner: OwnerShape | null
  host: SessionHost | null
}

export interface HostShape {
  id: string
  name: string
  alive: boolean
  here: boolean
  address: string | null
  cwd: string
  agents: string[]
  sessions: number
  turns: number
  version: string
  seenAt: string
}

export interface RuleFields {
  argvPrefix?: string[] | null
  expiresAt?: number | null
  effect: 'allow' | 'ask' | 'deny'
  operation?: 'read' | 'write' | 'execute' | 'fetch' | 'mcp' | 'other' | null
  agent?: string | null
  path?: string | null
  argv?: string[] | null
  cwd?: string | null
  host?: string | null
  tool?: string | null
  anywhere?: boolean
  scope?: 'once' | 'session' | 'project' | 'user'
  session?: string | null
  project?: string | null
  id?: string
  source?: string
}

export interface RuleShape {
  id: string
  rule: RuleFields
  createdAt: string
  usedAt: string | null
  here: boolean
  host: string | null
}

export interface RuleList {
  policies: RuleShape[]
  given?: RuleFields[]
}

export interface AddedRule {
  policy: RuleShape
  sentence: string
  warnings: string[]
  existed: boolean
}

export interface TriedRule {
  rule: RuleFields
  sentence: string
  matches: boolean
  mismatch: string | null
}

export interface Verdict {
  effect: 'allow' | 'ask' | 'deny'
  reason: string
  subject: string
  rule: RuleFields | null
  rules: TriedRule[]
}

export interface ProjectRule {
  effect: 'allow' | 'ask' | 'deny'
  sentence: string
  written: boolean
  trusted: boolean
}

export interface ProjectRuleList {
  folder: string
  path: string
  standing: 'none' | 'untrusted' | 'changed' | 'gone' | 'broken' | 'trusted'
  digest: string | null
  problem: string | null
  rules: ProjectRule[]
}

export interface ListedAgent {
  name: string
  title: string
  source: 'settings' | 'known'
  state: 'installed' | 'missing' | 'remote' | 'built in'
  isDefault: boolean
  command: string | null
  path: string | null
  install: string
  needs: string
  variable: string
  signIn: string
  homepage: string
  signedIn: boolean | null
  account: string | null
}

export interface AgentSessionShape {
  id: string
  cwd: string
  title: string | null
  updatedAt: string | null
  knownAs: string | null
  archived: boolean | null
  status: string | null
}

export interface CurrentProvider {
  apiType: string
  baseUrl: string
}

export interface ProviderShape {
  providerId: string
  supported: string[]
  required: boolean
  current: CurrentProvider | null
}

export interface ProviderList {
  providers: ProviderShape[]
}

export interface SignIn {
  id: string
  name: string
  kind: string
  description: string | null
  command: string[] | null
  env: string[]
}

export interface SignIns {
  methods: SignIn[]
  signedIn: boolean
  canLogout: boolean
}

export interface Question {
  agent: string
  id: string
  message: string
  mode: string
  schema: Json | null
  url: string | null
}

export interface Finding {
  grade: Grade
  text: string
  check: string
  seconds: number
}

export interface DoctorReport {
  outcome: Grade
  counts: Record<string, number>
  agent: string
  command: string
  agentInfo: Json
  protocolVersion: number
  capabilities: Json
  authMethods: string[]
  wantsSignIn: boolean
  findings: Finding[]
}

export interface Accepted {
  turn: string
  queued: boolean
  delayed?: string | null
}

export interface SteerAnswer {
  steer: string
  outcome: 'sent' | SteerOutcome
  way: SteerWay
  reason?: string
  turn?: string | null
  delayed?: string | null
}

export interface FoundFile {
  path: string
  kind: 'file' | 'folder'
}

export interface Subfolders {
  path: string
  parent: string | null
  folders: string[]
  complete: boolean
  branch: string | null
  problem: string | null
}

export interface Hunk {
  id: string
  oldStart: number
  oldLines: number
  newStart: number
  newLines: number
  lines: string[]
  by?: Author[]
  turns?: string[]
}

export interface FolderProblem {
  root: string
  reason: string
}

export interface FileChange {
  source: Author
  existed: boolean
  diff: string
  revertible: boolean
  path: string
  status: FileStatus
  oldPath: string | null
  by: Author[]
  turns: string[]
  protected: string | null
  oldMode: string | null
  newMode: string | null
  binary: boolean
  added: number
  removed: number
  oldSize: number
  newSize: number
  before: string | null
  after: string | null
  hunks: Hunk[]
}

export interface FileChanges {
  changes: FileChange[]
  complete: boolean
  tracked: boolean
  live: boolean
  problems: FolderProblem[]
  leftOut: LeftOut[]
  ignored: string[]
  ignoredCount: number
}

export interface RevertAnswer {
  paths: string[]
  kept?: string[] | null
  restoreId?: string | null
  waits?: boolean
  delayed?: string | null
}

export interface RewindAnswer {
  session: string
  continuity: 'same' | 'continued' | 'reset'
  reason: string | null
  paths: string[]
  kept: string[]
  restoreId: string | null
  prompt: string
}

export interface FrameShape {
  seq: number
  at: string
  direction: 'sent' | 'received'
  size: number
  text: string
  cut: boolean
}

export interface Upload {
  uri: string
  name: string
  mimeType: string
  size: number
}

export interface SpendingLimit {
  measure: Measure
  most: number
  per: LimitScope
  then: 'stop' | 'ask' | 'warn'
  currency: string
  agent: string
  project: string
  source: string
  instead: SpendingLimit[]
}

export interface BoundLimit {
  limit: SpendingLimit
  used: number | null
}

export interface LimitList {
  limits: BoundLimit[]
}

export interface HitShape {
  sessionId: string
  title: string | null
  seq: number
  kind: string
  snippet: string
}

export interface CostAmount {
  amount: number
  currency: string
}

export interface Tokens {
  total: number
  input: number
  cached: number
  output: number
  thought: number
}

export interface Spending {
  turns: number
  toolCalls: number
  seconds: number
  waited: number
  tokens: Tokens | null
  cost: Record<string, number>
  estimated: Record<string, number>
  parked: number
  turnsWithoutTokens: number
  turnsWithoutCost: number
}

export interface UsageRow {
  name: string
  title: string | null
  spent: Spending
}

export interface UsageList {
  rows: UsageRow[]
  total: Spending
}

export interface CheckCounts {
  total: number
  failed: number
  skipped: number
}

export interface CheckRun {
  code: number | null
  seconds: number
  problem: string
  counts: CheckCounts | null
  output: string
}

export interface JudgedFiles {
  edited: string[]
  deleted: string[]
  added: string[]
  configuration: string[]
}

export interface Entrant {
  label: string
  agent: string
  status: EntrantStatus
  outcome: Outcome | null
  detail: string
  session: string | null
  worktree: string | null
  branch: string | null
  beganAt: number | null
  seconds: number
  toolCalls: number
  cost: Record<string, number>
  tokens: number | null
  files: number
  added: number
  removed: number
  result: string | null
  judged: JudgedFiles
  check: CheckRun | null
}

export interface ReviewRound {
  shown: Record<string, string>
  answer: string
  best: string | null
}

export interface RaceReview {
  agent: string
  rounds: ReviewRound[]
}

export interface RacePlace {
  label: string
  passed: boolean
  reason: string
}

export interface RaceVerdict {
  winner: string | null
  places: RacePlace[]
  because: string
}

export interface RaceRecord {
  id: string
  task: string
  check: string
  folder: string
  repository: string
  base: string
  createdAt: number
  entrants: Entrant[]
  endedAt: number | null
  owner: Json | null
  baseline: CheckRun | null
  review: RaceReview | null
  verdict: RaceVerdict | null
  merged: string[] | null
  problem: string
}

export interface TokenShape {
  id: string
  name: string
  role: 'admin'
  state: 'active' | 'pairing' | 'expired' | 'revoked'
  createdAt: string
  expiresAt: string | null
  usedAt: string | null
  revokedAt: string | null
  here: boolean
}

export interface TokenList {
  tokens: TokenShape[]
}

export interface Pairing {
  token: TokenShape
  address: string
  rows: string[]
}

export interface Paired {
  id: string
  name: string
  token: string
}

export interface PushState {
  available: boolean
  key: string | null
  reason: string | null
}

export interface PushShape {
  id: string
  content: boolean
  endings: boolean
}

export type Status = 'idle' | 'running' | 'waiting' | 'parked' | 'interrupted' | 'closed'

export type Grade = 'pass' | 'warn' | 'fail' | 'skip'

export type EntrantStatus = 'waiting' | 'preparing' | 'running' | 'judging' | 'done'

export type Outcome = 'completed' | 'limit' | 'timeout' | 'failed' | 'ended_early' | 'cancelled'

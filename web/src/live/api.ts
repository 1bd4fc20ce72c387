// The server's HTTP API, one function a call. What comes back is believed to have the shape that the
// contract says; text in it is the agent's and is shown as text.

import type {
  Accepted, AddedRule, AgentSessionShape, CostAmount, DoctorReport, FileChanges, FoundFile, FrameShape, HitShape, HostShape,
  LimitList, ListedAgent, ProjectRuleList, ProviderList, Question, RaceRecord, RevertAnswer, RewindAnswer, RuleList, SignIns, SteerAnswer, Subfolders, Summary, Upload, UsageList, Verdict,
} from '../core/generated/responses'
import type { Json } from '../core/generated/content'
import type { Event } from '../core/generated/events'
import type { LimitScope, OnLimit } from '../core/generated/facts'
import { token } from './token'

export type {
  Accepted, AgentSessionShape, CostAmount as Amount, DoctorReport, FileChange, FileChanges, FrameShape as RawFrame, BoundLimit,
  HitShape as SearchHit, ListedAgent as AgentInfo, ProviderShape as ModelProvider, ProjectRule, ProjectRuleList, Question as AgentQuestion, RuleShape as Policy, SignIn as SignInMethod,
  SignIns, Status, Summary, Upload, UsageList, Verdict,
} from '../core/generated/responses'

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly detail: unknown = null,
  ) {
    super(message)
  }
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token()}` }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const request: RequestInit = { method, headers, cache: 'no-store' }
  if (body !== undefined) request.body = JSON.stringify(body)
  if (signal !== undefined) request.signal = signal
  const response = await fetch(path, request).catch((error: unknown) => {
    throw signal?.aborted ? error : new ApiError(0, 'unreachable', 'Cannot reach the server.')
  })
  const text = await response.text()
  if (!response.ok) throw failure(response.status, text)
  return (text === '' ? {} : JSON.parse(text)) as T
}

function failure(status: number, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; detail?: unknown } }
    return new ApiError(status, error.code, error.message, error.detail)
  } catch {
    return new ApiError(status, 'failed', `The server responded with status ${status}.`)
  }
}

const at = (id: string) => `/api/sessions/${encodeURIComponent(id)}`
const agentAt = (name: string) => `/api/agents/${encodeURIComponent(name)}`
const query = (fields: Record<string, string | number | undefined>) => {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) params.set(key, String(value))
  const text = params.toString()
  return text && `?${text}`
}

/** What of its host an agent is offered. */
export interface Offered { files: boolean; terminals: boolean; fence?: FenceMode }

/** `on`: fenced if the system can do it; `ask`: and a write outside is a question; `require`: or nothing is started. */
export type FenceMode = 'off' | 'on' | 'ask' | 'require'

/** Sent to the agent whenever it opens the session; without a mode, added to its own instructions. */
export interface SystemPrompt { text: string; mode?: 'append' | 'override' }

export interface NewSession { agent: string; host?: string; cwd?: string; mode?: string; config?: Record<string, string | boolean>; offer?: Offered; fence?: FenceMode; systemPrompt?: SystemPrompt; limits?: LimitWish[]; onLimit?: OnLimit }

/** One thing that may be used up, as in the settings. */
export interface LimitWish { cost?: number; tokens?: number; time?: string; toolCalls?: number; turns?: number; per?: LimitScope; then?: 'stop' | 'ask' | 'warn' }

export const sessions = {
  list: (before?: string) =>
    call<{ sessions: Summary[]; next: string | null }>('GET', `/api/sessions${query({ limit: 500, before })}`),
  exists: async (id: string) => {
    const { sessions: found, next } = await call<{ sessions: Summary[]; next: string | null }>('GET', `/api/sessions${query({ limit: 500, q: id })}`)
    return next !== null || found.some((session) => session.id === id)
  },
  state: (id: string, entries: number, before?: number) =>
    call<Detail>('GET', `${at(id)}${query({ entries, before })}`),
  subagentEntries: (id: string, subagent: string, entries: number, before: number) =>
    call<EntryPage>('GET', `${at(id)}/subagents/${encodeURIComponent(subagent)}/entries${query({ entries, before })}`),
  events: (id: string, after: number, limit?: number, types?: string) =>
    call<{ events: Event[]; last: number }>('GET', `${at(id)}/events${query({ after, limit, types })}`),
  limits: (id: string) => call<LimitList>('GET', `${at(id)}/limits`),
  create: (session: NewSession) => call<Summary>('POST', '/api/sessions', session),
  change: (id: string, change: { title?: string; archived?: boolean; cwd?: string }) => call<Summary>('PATCH', at(id), change),
  remove: (id: string) => call<unknown>('DELETE', at(id)),
  prompt: (id: string, prompt: Prompt) => call<Accepted>('POST', `${at(id)}/prompt`, prompt),
  steer: (id: string, prompt: Prompt) => call<SteerAnswer>('POST', `${at(id)}/steer`, prompt),
  cancel: (id: string) => call<Json>('POST', `${at(id)}/cancel`),
  cancelToolCall: (id: string, toolCall: string) => call<Json>('POST', `${at(id)}/cancel`, { toolCallId: toolCall }),
  cancelTerminal: (id: string, terminal: string) => call<Json>('POST', `${at(id)}/cancel`, { terminalId: terminal }),
  cancelSubagent: (id: string, subagent: string) => call<Json>('POST', `${at(id)}/cancel`, { subagentId: subagent }),
  /** Fails with `agent_shared` when other sessions would lose their turns, unless `force`. */
  kill: (id: string, force = false) => call<Json>('POST', `${at(id)}/kill`, { force }),
  close: (id: string) => call<Json>('POST', `${at(id)}/close`),
  fork: (id: string) => call<Summary>('POST', `${at(id)}/fork`, {}),
  move: (id: string, host: string, reset: boolean) => call<Summary>('POST', `${at(id)}/move`, { host, reset }),
  mode: (id: string, modeId: string) => call<Json>('POST', `${at(id)}/mode`, { modeId }),
  config: (id: string, configId: string, value: string | boolean) =>
    call<Json>('POST', `${at(id)}/config`, { configId, value }),
  /** What is dangerous and shall count for longer has to be `confirmed`. */
  permit: (id: string, request: string, optionId: string, confirmed = false) =>
    call<Json>('POST', `${at(id)}/permissions/${encodeURIComponent(request)}`, confirmed ? { optionId, confirmed } : { optionId }),
  elicit: (id: string, request: string, action: string, content?: Json) =>
    call<Json>('POST', `${at(id)}/elicitations/${encodeURIComponent(request)}`, content ? { action, content } : { action }),
  editQueued: (id: string, queueId: string, prompt: Prompt) => call<Json>('POST', `${at(id)}/queue`, { id: queueId, ...prompt }),
  dropQueued: (id: string, queueId: string) => call<Json>('DELETE', `${at(id)}/queue${query({ id: queueId })}`),
  /** Another agent continues, in a new session. Fails with `busy` while a turn runs. */
  handOff: (id: string, agent: string) => call<{ session: string }>('POST', `${at(id)}/handoff`, { agent }),
  settleParked: (id: string, action: 'continue' | 'wait' | 'drop' | 'hand_over', agent?: string) =>
    call<{ turn?: string; session?: string }>('POST', `${at(id)}/parked`, agent === undefined ? { action } : { action, agent }),
  changes: (id: string, turnId?: string) =>
    call<FileChanges>('GET', `${at(id)}/changes${query({ turnId })}`),
  /** Fails with `conflict`, and does nothing, where someone changed the same since: `choices` say what to do. */
  revert: (id: string, what: Undoing) => call<RevertAnswer>('POST', `${at(id)}/revert`, what),
  /** To before a turn. Fails as a revert does. */
  rewind: (id: string, what: Rewinding) => call<RewindAnswer>('POST', `${at(id)}/rewind`, what),
  frames: (id: string, after: number) =>
    call<{ frames: FrameShape[]; last: number; lost: boolean }>('GET', `${at(id)}/frames${query({ after })}`),
  files: (id: string, q: string, signal?: AbortSignal) =>
    call<{ files: FoundFile[]; complete: boolean }>('GET', `${at(id)}/files${query({ q, limit: 12 })}`, undefined, signal),
}

/** For each file that someone changed since. */
export type Choices = Record<string, 'keep' | 'restore'>

/** A turn or a restore, or all of them; some files or hunks, or all. */
export interface Undoing { turnId?: string; paths?: string[]; hunks?: string[]; choices?: Choices }

export interface Rewinding { turnId: string; files: boolean; conversation: boolean; summary: boolean; choices?: Choices }

export interface RunningAgent { name: string; version: string; protocolVersion: number; capabilities: Json }

export type Detail = Summary & Json & {
  entries: Json[]
  firstEntry: number
  entryCount: number
  runningAgent?: RunningAgent | null
  offer?: Offered
  systemPrompt?: SystemPrompt | null
  /** Hosts that have its agent, when its own is not there. */
  resumeOn?: string[]
}

/** Rows of a subagent; `firstEntry` is the number of the first. */
export interface EntryPage { entries: Json[]; firstEntry: number; entryCount: number }

/** A session that shares its agent's process with another. */
export interface Sharer { id: string; title: string | null; name: string | null; status: string }

/** Text whose mentions become links, and blocks as ACP has them; with `onReset` also to an agent that
 * does not remember the session. */
export interface Prompt { text?: string; content?: Json[]; onReset?: 'new' }

export const agents = {
  list: () => call<{ agents: ListedAgent[] }>('GET', '/api/agents'),
  sessions: (name: string, archived?: 'include') =>
    call<{ sessions: AgentSessionShape[] }>('GET', `${agentAt(name)}/sessions${query({ archived, limit: 500 })}`),
  adopt: (name: string, sessionId: string, cwd: string) =>
    call<Summary>('POST', `${agentAt(name)}/sessions`, { sessionId, cwd }),
  signIn: (name: string, methodId?: string) => call<SignIns>('POST', `${agentAt(name)}/auth`, methodId ? { methodId } : {}),
  signOut: (name: string) => call<unknown>('DELETE', `${agentAt(name)}/auth`),
  questions: (name: string) => call<{ questions: Question[] }>('GET', `${agentAt(name)}/questions`),
  allQuestions: () => call<{ questions: Question[] }>('GET', '/api/questions'),
  answer: (name: string, id: string, action: string, content?: Json) =>
    call<unknown>('POST', `${agentAt(name)}/questions/${encodeURIComponent(id)}`, { action, ...(content && { content }) }),
  providers: (name: string) => call<ProviderList>('GET', `${agentAt(name)}/providers`),
  setProvider: (name: string, id: string, body: { apiType: string; baseUrl: string; headers: Record<string, string> }) =>
    call<unknown>('PUT', `${agentAt(name)}/providers/${encodeURIComponent(id)}`, body),
  disableProvider: (name: string, id: string) => call<unknown>('DELETE', `${agentAt(name)}/providers/${encodeURIComponent(id)}`),
  doctor: (name: string) => call<DoctorReport>('POST', `${agentAt(name)}/doctor`),
}

/** The folders in a folder; without a path, in that of the server. */
export const folders = (path?: string) => call<Subfolders>('GET', `/api/folders${query({ path })}`)

export const hosts = () => call<{ hosts: HostShape[] }>('GET', '/api/hosts')

export const search = (q: string, signal?: AbortSignal) =>
  call<{ hits: HitShape[] }>('GET', `/api/search${query({ q })}`, undefined, signal)

/** What was spent since a moment, in each currency. */
export const costs = (since: number) => call<{ costs: CostAmount[] }>('GET', `/api/costs${query({ since })}`)

/** What the turns that began since a moment have used; a row for each day, agent, project, model or session. */
export const races = () => call<{ races: RaceRecord[] }>('GET', '/api/races')
export const usage = (since: number, by: string) => call<UsageList>('GET', `/api/usage${query({ since, by })}`)

/** A request to try the rules on. */
export interface TrialBody { operation: string; command?: string; path?: string; host?: string; tool?: string; cwd?: string }

/** Without a project, a rule applies in all of them. */
export interface NewRule extends Omit<TrialBody, 'cwd'> { effect: Verdict['effect']; prefix?: boolean; project?: string; expiresAt?: number }

export const policies = {
  list: () => call<RuleList>('GET', '/api/policies'),
  revoke: (id: string) => call<unknown>('DELETE', `/api/policies${query({ id })}`),
  add: (rule: NewRule) => call<AddedRule>('POST', '/api/policies', rule),
  explain: (request: TrialBody) => call<Verdict>('POST', '/api/policies/explain', request),
  ofProject: (folder: string) => call<ProjectRuleList>('GET', `/api/policies/project${query({ folder })}`),
  /** Fails with `conflict` if the file is no longer the one of this digest. */
  trust: (folder: string, digest: string) => call<ProjectRuleList>('POST', '/api/policies/project', { folder, digest }),
  distrust: (folder: string) => call<ProjectRuleList>('DELETE', `/api/policies/project${query({ folder })}`),
}

/** Puts a file on the server; a prompt names it as `{type: "upload", uri}`. */
export async function upload(file: File): Promise<Upload> {
  const headers = { Authorization: `Bearer ${token()}`, 'Content-Type': file.type || 'application/octet-stream' }
  const path = `/api/uploads${query({ name: file.name })}`
  const response = await fetch(path, { method: 'POST', headers, body: file })
  const text = await response.text()
  if (!response.ok) throw failure(response.status, text)
  return JSON.parse(text) as Upload
}

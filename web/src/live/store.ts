// All sessions of this tab, outside React: the server's list, and those that are open.

import type { Event } from '../core/generated/events'
import { leading } from '../core/permissions/questions'
import type { Pending } from '../core/session/state'
import type { Rule } from '../core/permissions/rules'
import { ApiError, agents, costs, policies, sessions, type AgentInfo, type AgentQuestion, type Amount, type Summary } from './api'
import type { Frame, Link } from './stream_reader'
import { LiveSession } from './session'
import { Signal } from './signal'
import { listen } from './tab_link'
import { token } from './token'

export interface Waiting { session: Summary; pending: Pending }

// Events that change what the list says; the rest is words.
const TELLING: ReadonlySet<string> = new Set([
  'session_opened', 'session_closed', 'turn_started', 'turn_ended', 'turn_cancelling', 'info',
  'permission_requested', 'permission_settled', 'elicitation_requested', 'elicitation_settled',
])
const SEEN = 'dragoman.seen'
const REFRESH_MS = 250
const COST_MS = 2000
const HOSTS_MS = 5000

class Store {
  summaries = new Map<string, Summary>()
  agents: AgentInfo[] = []
  loaded = false
  /** The rules that the server was started with. */
  given: Rule[] = []
  /** The cost since midnight, as reported by the agents. */
  spent: Amount[] = []
  link: Link = 'connecting'
  /** What is delayed while the server cannot reach its database. */
  away: string | null = null
  /** What agents ask outside of sessions. */
  outside: AgentQuestion[] = []
  /** The list, what waits, and the connection. */
  readonly list = new Signal()
  readonly happened: ((session: Summary, event: Event) => void)[] = []
  private readonly live = new Map<string, LiveSession>()
  private seen: Record<string, number> = readSeen() ?? {}
  /** This browser never looked before. */
  private first = readSeen() === null
  private timer: ReturnType<typeof setTimeout> | null = null
  private costTimer: ReturnType<typeof setTimeout> | null = null
  private asked = 0
  private answered = 0

  start(): void {
    listen(token(), {
      frames: (frames) => this.frames(frames),
      link: (link) => this.linked(link),
      reset: () => this.reset(),
      listed: () => {
        this.soon()
        void this.askQuestions()
      },
      away: (sentence) => {
        this.away = sentence
        this.list.emit()
      },
    })
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.soon() })
    void this.refresh()
    void this.askAgents()
    void this.askGiven()
    void this.askQuestions()
    this.costSoon(0)
    // A host that dies says nothing.
    setInterval(() => { if (this.anyElsewhere()) this.soon() }, HOSTS_MS)
    // Midnight starts a new day, also on an idle page.
    setInterval(() => this.costSoon(0), 600_000)
  }

  // ── what happens ─────────────────────────────────────────────────────────────────────────────

  private frames(frames: Frame[]): void {
    let telling = false
    for (const frame of frames) {
      this.live.get(frame.session)?.receive(frame)
      telling ||= TELLING.has(frame.event.type) || !this.summaries.has(frame.session)
      if (frame.event.type === 'usage' && frame.event.cost != null) this.costSoon(COST_MS)
      const summary = this.summaries.get(frame.session)
      if (summary === undefined) continue
      summary.lastSeq = Math.max(summary.lastSeq, frame.seq)
      for (const listener of this.happened) listener(summary, frame.event)
    }
    if (telling) this.soon()
  }

  private linked(link: Link): void {
    // Only a new token helps, and that begins with a new page.
    if (this.link === 'refused') return
    const returned = link === 'online' && this.link !== 'online' && this.loaded
    this.link = link
    if (link !== 'online') this.away = null
    if (returned) {
      this.soon()
      void this.askAgents()
      void this.askQuestions()
      // It may be another server, with other flags.
      void this.askGiven()
      for (const session of this.live.values()) void session.catchUp()
    }
    this.list.emit()
  }

  private reset(): void {
    this.soon()
    for (const session of this.live.values()) void session.reload()
  }

  soon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null
      void this.refresh()
    }, REFRESH_MS)
  }

  /** Which agents there are; null when that could not be learnt. */
  async askAgents(): Promise<AgentInfo[] | null> {
    const told = await agents.list().catch(() => null)
    if (told === null) return null
    this.agents = told.agents
    this.list.emit()
    return told.agents
  }

  private async askGiven(): Promise<void> {
    const told = await policies.list().catch(() => null)
    if (told === null) return
    this.given = told.given ?? []
    this.list.emit()
  }

  async askQuestions(): Promise<void> {
    const told = await agents.allQuestions().catch(() => null)
    if (told === null) return
    this.outside = told.questions
    this.list.emit()
  }

  private costSoon(wait: number): void {
    this.costTimer ??= setTimeout(() => {
      this.costTimer = null
      costs(new Date().setHours(0, 0, 0, 0) / 1000).then((told) => {
        this.spent = told.costs
        this.list.emit()
      }, () => undefined)
    }, wait)
  }

  async refresh(): Promise<void> {
    const question = ++this.asked
    try {
      const found = new Map<string, Summary>()
      let next: string | null | undefined
      do {
        const page = await sessions.list(next ?? undefined)
        for (const summary of page.sessions) found.set(summary.id, summary)
        next = page.next
      } while (next && found.size < 5000)
      // An answer that was overtaken by that to a later question is out of date.
      if (question < this.answered) return
      this.answered = question
      this.summaries = found
      this.loaded = true
      this.firstLook()
      for (const summary of found.values()) if (summary.status === 'waiting') void this.open(summary.id).load()
      if (!next) for (const session of this.live.values()) if (!found.has(session.id)) void session.missed()
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.link = 'refused'
    }
    this.list.emit()
  }

  /** Show a session that was just made without waiting for the list. */
  add(summary: Summary): void {
    this.summaries.set(summary.id, summary)
    this.list.emit()
    this.soon()
  }

  // ── sessions ─────────────────────────────────────────────────────────────────────────────────

  open(id: string): LiveSession {
    let session = this.live.get(id)
    if (session === undefined) {
      session = new LiveSession(id)
      session.facts.subscribe(() => this.list.emit())
      this.live.set(id, session)
    }
    return session
  }

  forget(id: string): void {
    this.live.delete(id)
    this.summaries.delete(id)
    this.list.emit()
  }

  /** What is to be answered in all sessions, the newest last. */
  waiting(): Waiting[] {
    const found: (Waiting & { asked: number; arrived: number })[] = []
    for (const session of this.summaries.values()) {
      const live = this.live.get(session.id)
      if (live === undefined || session.archived) continue
      for (const pending of leading(live.state.pending)) {
        found.push({ session, pending, asked: live.askedAt.get(pending.id) ?? 0, arrived: live.arrivals.get(pending.id) ?? 0 })
      }
    }
    return found.sort((a, b) => a.asked - b.asked || a.arrived - b.arrived || a.session.id.localeCompare(b.session.id))
  }

  /** How many answers are wanted, in sessions and outside. */
  get wanted(): number {
    return this.waiting().length + this.outside.length
  }

  /** Sessions that wait, of which it is not known yet for what. */
  unclear(): Summary[] {
    return [...this.summaries.values()].filter(({ id, status, archived }) => status === 'waiting' && !archived && !this.live.get(id)?.loaded)
  }

  private anyElsewhere(): boolean {
    return !document.hidden && [...this.summaries.values()].some(({ host }) => host !== null && !host.here)
  }

  /** A session as far as it was looked at, without asking for it. */
  known(id: string): LiveSession | undefined {
    return this.live.get(id)
  }

  count(status: Summary['status']): number {
    let n = 0
    for (const session of this.summaries.values()) if (session.status === status && !session.archived) n++
    return n
  }

  // ── what was read ────────────────────────────────────────────────────────────────────────────

  unread(session: Summary): boolean {
    return !this.first && session.lastSeq > (this.seen[session.id] ?? 0) && session.status !== 'running'
  }

  see(id: string): void {
    const seq = Math.max(this.summaries.get(id)?.lastSeq ?? 0, this.live.get(id)?.state.lastSeq ?? 0)
    if (seq > (this.seen[id] ?? 0)) this.saw({ [id]: seq })
  }

  /** What was there before this browser ever looked is not news. */
  private firstLook(): void {
    if (!this.first) return
    this.first = false
    this.saw(Object.fromEntries([...this.summaries.values()].map(({ id, lastSeq }) => [id, lastSeq])))
  }

  private saw(now: Record<string, number>): void {
    const seen: Record<string, number> = { ...readSeen() }
    for (const [id, seq] of [...Object.entries(this.seen), ...Object.entries(now)]) seen[id] = Math.max(seq, seen[id] ?? 0)
    this.seen = seen
    localStorage.setItem(SEEN, JSON.stringify(seen))
    this.list.emit()
  }
}

function readSeen(): Record<string, number> | null {
  try {
    return JSON.parse(localStorage.getItem(SEEN) ?? 'null') as Record<string, number> | null
  } catch {
    return null
  }
}

export const store = new Store()

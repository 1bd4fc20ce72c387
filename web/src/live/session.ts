// One session as this tab knows it: the end of its thread first, then as much of the rest as fits, then
// live events; older entries on demand. Events wait for the next animation frame and are applied
// together; changed rows are notified one by one, so that a streamed word draws one row.

import { LIMITS } from '../core/generated/limits'
import { reduce } from '../core/session/fold'
import { Changes } from '../core/session/thread'
import { hydrate, index } from '../core/session/hydrate'
import type { Values } from '../core/form'
import type { Json } from '../core/generated/content'
import type { Entry, SessionState, Subagent, Terminal } from '../core/session/state'
import { newState } from '../core/session/state'
import { ApiError, sessions, type Detail } from './api'
import { pause, type Frame } from './stream_reader'
import { Signal } from './signal'

const FIRST_ENTRIES = 40
const MORE_ENTRIES = 10_000
const OLDER_ENTRIES = 500
/** How many times the usual limits a person may scroll back. */
const FURTHEST = 4
const PAGE = 5_000
const RETRY_MS = 1_000

/** What a queued prompt says, and what it shall say. */
export interface QueueEdit { before: string; text: string }

type Row = Entry | Terminal | Subagent

export class LiveSession {
  state: SessionState = newState()
  loaded = false
  error: ApiError | null = null
  /** Someone deleted it: what was loaded is all that is left. */
  gone = false
  /** It is looked back at: nothing in it can be answered or stopped. */
  readonly past: boolean = false
  /** Pending requests, their turns, modes and everything else but the thread. */
  readonly facts = new Signal()
  /** Entries were added, or all of them replaced. */
  readonly thread = new Signal()
  /** When each question came here, in milliseconds. */
  readonly arrivals = new Map<string, number>()
  /** When each was asked, in milliseconds since 1970, as far as that is known. */
  readonly askedAt = new Map<string, number>()
  /** What was filled in of a question and not sent. It is kept here alone: it may be a secret. */
  readonly filled = new Map<string, Values>()
  /** Prompts on their way to the server: it may start the agent first. */
  sending = 0
  /** Why the agent cannot continue the conversation; until the next prompt. */
  forgotten = ''
  /** Changes of queued prompts that were not saved. */
  readonly edits = new Map<string, QueueEdit>()
  /** Rows of subagents that were loaded in addition to those in their threads, by subagent. */
  private readonly earlier = new Map<string, { first: number; entries: Entry[] }>()
  private readonly rows = new Map<Row, Set<() => void>>()
  private waiting: Frame[] = []
  private scheduled = false
  private loading: Promise<void> | null = null
  private fetching = 0
  /** The question after missing events that is not answered yet. */
  private filling: object | null = null
  private limits = LIMITS
  private lookingBack = false
  /** Rows were added while older ones were missing. */
  private grew = false

  constructor(readonly id: string) {}

  /** How many entries there are before `state.entries[0]`. */
  get first(): number {
    return this.state.entriesBefore
  }

  /** Whether there are older entries, and room for them. */
  get canLookBack(): boolean {
    return this.loaded && this.first > 0 && !this.past && this.hasRoom(FURTHEST)
  }

  /** Ask for the session, if that was not done yet. */
  load(): Promise<void> {
    this.loading ??= this.fetch()
    return this.loading
  }

  /** Forget what is known and ask again. */
  reload(): Promise<void> {
    this.loading = this.fetch()
    return this.loading
  }

  private async fetch(): Promise<void> {
    const fetching = ++this.fetching
    const told = await sessions.state(this.id, FIRST_ENTRIES).catch(failureOf)
    // A later request was made meanwhile: its answer counts.
    if (fetching !== this.fetching) return
    if (told instanceof ApiError) return this.failed(told)
    this.limits = LIMITS
    this.adopt(told)
    // The end is drawn before anything else is asked for.
    if (this.first > 0) await leisure()
    await this.fetchOlder(fetching)
  }

  /** Half of the limits, so that what is loaded does not leave at once. */
  private hasRoom(times = 0.5): boolean {
    const { entries, size } = this.state
    return entries.length < times * LIMITS.entries && size < times * LIMITS.thread
  }

  /** Load some of the entries before the first; they stay, and what comes has its own room. */
  async lookBack(): Promise<void> {
    if (this.lookingBack || !this.canLookBack) return
    this.lookingBack = true
    const { fetching } = this
    const told = await sessions.state(this.id, OLDER_ENTRIES, this.first).catch(failureOf)
    this.lookingBack = false
    if (told instanceof ApiError || fetching !== this.fetching || told.entries.length === 0) return
    if (!this.prepend(hydrate({ entries: told.entries }).entries, told.firstEntry)) return
    const { entries, size } = this.state
    this.limits = { ...LIMITS, entries: LIMITS.entries + entries.length, thread: LIMITS.thread + size }
  }

  /** Loaded rows of a subagent before the first of its thread; none once others lie between them. */
  earlierOf({ sessionId, thread }: Subagent): Entry[] {
    const known = this.earlier.get(sessionId)
    return known !== undefined && known.first + known.entries.length === thread.entriesBefore ? known.entries : []
  }

  /** Load some of the rows before those. */
  async lookBackAt(child: Subagent): Promise<void> {
    const known = this.earlierOf(child)
    const before = child.thread.entriesBefore - known.length
    const told = await sessions.subagentEntries(this.id, child.sessionId, OLDER_ENTRIES, before)
    if (told.firstEntry + told.entries.length !== before) return
    const entries = hydrate({ entries: told.entries }).entries
    this.earlier.set(child.sessionId, { first: told.firstEntry, entries: entries.concat(this.earlierOf(child)) })
    this.facts.emit()
  }

  private failed(error: ApiError): void {
    this.error = error
    // What is shown already stays up to date, and is requested again.
    if (!this.loaded) this.loading = null
    else if (!isFinal(error)) setTimeout(() => { if (this.error === error) void this.reload() }, RETRY_MS)
    this.facts.emit()
  }

  private async fetchOlder(fetching: number): Promise<void> {
    while (this.first > 0 ? this.hasRoom() : this.grew) {
      const told = await sessions.state(this.id, MORE_ENTRIES, this.first || undefined).catch(failureOf)
      if (fetching !== this.fetching) return
      if (told instanceof ApiError) {
        if (isFinal(told)) return
        await pause(RETRY_MS)
      } else if (this.first === 0) this.replaceEnd(told)
      else if (told.entries.length === 0) return
      else this.prepend(hydrate({ entries: told.entries }).entries, told.firstEntry)
    }
  }

  private adopt(told: Parameters<typeof hydrate>[0]): void {
    this.state = hydrate(told)
    this.loaded = true
    this.error = null
    this.grew = false
    // It waits since its last event, if it waits: what came before this tab did is in its order too.
    this.noteQuestions(Date.parse(String((told as Json).updatedAt)))
    this.flush()
    this.thread.emit()
    this.facts.emit()
  }

  /** An update of a row that was not loaded yet has made a new row of it: load the end again. */
  private replaceEnd(told: Detail): void {
    const older = this.state.entries.slice(0, told.firstEntry)
    this.adopt(told)
    this.prepend(older, 0)
    this.grew = false
  }

  /** False when others came first: the older part loads on its own, or when a person scrolls back. */
  private prepend(older: Entry[], first: number): boolean {
    const { state } = this
    if (first + older.length !== state.entriesBefore) return false
    state.entries = older.concat(state.entries)
    state.entriesBefore = first
    index(state)
    this.thread.emit()
    return true
  }

  // ── what happens ─────────────────────────────────────────────────────────────────────────────

  receive(frame: Frame): void {
    if (this.loading === null) return
    this.waiting.push(frame)
    this.schedule()
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    const run = () => {
      if (!this.scheduled) return
      this.scheduled = false
      clearTimeout(timer)
      if (this.loaded) this.flush()
    }
    // A hidden tab has no animation frames; it still has to say that someone is needed.
    const timer = setTimeout(run, 200)
    requestAnimationFrame(run)
  }

  private flush(): void {
    const changes = new Changes()
    const frames = this.waiting
    this.waiting = []
    for (const [at, frame] of frames.entries()) {
      if (frame.seq <= this.state.lastSeq) continue
      // Something is missing, or a joined frame begins with what is known: the events say it one by one.
      if (frame.from !== this.state.lastSeq + 1) {
        this.waiting = frames.slice(at)
        void this.fillGap()
        break
      }
      reduce(this.state, frame.event, changes, this.limits)
    }
    this.tell(changes)
  }

  /** Questions that came, however they did, and those that are settled. */
  private noteQuestions(since = NaN): void {
    const { pending } = this.state
    for (const id of pending.keys()) {
      if (this.arrivals.has(id)) continue
      this.arrivals.set(id, performance.now())
      this.askedAt.set(id, Number.isNaN(since) ? Date.now() : since)
    }
    for (const known of [this.arrivals, this.askedAt, this.filled]) {
      for (const id of known.keys()) if (!pending.has(id)) known.delete(id)
    }
  }

  /** It is no longer in the list: check whether it still exists. */
  async missed(): Promise<void> {
    if (this.gone || !this.loaded) return
    this.gone = !(await sessions.exists(this.id).catch(() => true))
    if (this.gone) this.facts.emit()
  }

  /** Ask for what this tab may have missed. */
  async catchUp(): Promise<void> {
    if (this.loaded) await this.fillGap(true)
    else if (this.error !== null) await this.reload()
  }

  /** Request the events after the last one, one request at a time; `restart` abandons an earlier one. */
  private async fillGap(restart = false): Promise<void> {
    if (this.filling !== null && !restart) return
    const { state } = this
    const question = this.filling = {}
    const told = await sessions.events(this.id, state.lastSeq, PAGE).catch(failureOf)
    if (question !== this.filling) return
    this.filling = null
    // What they would follow was replaced meanwhile: look again at what waits.
    if (state !== this.state) return this.schedule()
    if (told instanceof ApiError) {
      if (!isFinal(told)) setTimeout(() => void this.fillGap(), RETRY_MS)
      return
    }
    const changes = new Changes()
    for (const event of told.events) if ((event.seq ?? 0) > state.lastSeq) reduce(state, event, changes, this.limits)
    this.tell(changes)
    if (told.events.length && state.lastSeq < told.last) void this.fillGap()
    else if (told.events.length) this.schedule()
    else if (this.waiting.length) setTimeout(() => this.schedule(), RETRY_MS)
  }

  protected tell(changes: Changes): void {
    if (changes.facts) this.noteQuestions()
    if (changes.appended && this.first > 0) this.grew = true
    if (changes.appended) this.thread.emit()
    if (changes.facts || changes.appended) this.facts.emit()
    for (const row of [...changes.entries, ...changes.terminals, ...changes.subagents]) {
      for (const listener of this.rows.get(row) ?? []) listener()
    }
  }

  /** Get notified when one row, one terminal or one subagent changes. */
  watch(row: Row, listener: () => void): () => void {
    const listeners = this.rows.get(row) ?? new Set()
    this.rows.set(row, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.rows.delete(row)
    }
  }
}

function failureOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'failed', String(error))
}

/** Asking again would not help: it is gone, or we are not known. */
function isFinal({ status }: ApiError): boolean {
  return status === 404 || status === 401 || status === 403
}

function leisure(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === 'undefined') setTimeout(resolve, 300)
    else requestIdleCallback(() => resolve(), { timeout: 1000 })
  })
}

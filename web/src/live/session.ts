// One session as this tab knows it: the end of its thread first, then all of it, then whatever
// happens. Events wait for the next animation frame and are applied together; rows that changed are
// told apart, so that a word that streams in draws one row.

import { Changes, reduce } from '../core/fold'
import { hydrate, index } from '../core/hydrate'
import type { Entry, SessionState, Terminal } from '../core/state'
import { newState } from '../core/state'
import { ApiError, sessions } from './api'
import type { Frame } from './frames'
import { Signal } from './signal'

const FIRST_ENTRIES = 40
const MORE_ENTRIES = 10_000
const PAGE = 5_000

export class LiveSession {
  state: SessionState = newState()
  /** How many entries there are before `state.entries[0]`. */
  first = 0
  loaded = false
  error: ApiError | null = null
  /** Pending requests, their turns, modes and everything else but the thread. */
  readonly facts = new Signal()
  /** Entries were added, or all of them replaced. */
  readonly thread = new Signal()
  /** When each question came here, in milliseconds. */
  readonly arrivals = new Map<string, number>()
  private readonly rows = new Map<Entry | Terminal, Set<() => void>>()
  private waiting: Frame[] = []
  private scheduled = false
  private loading: Promise<void> | null = null

  constructor(readonly id: string) {}

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
    try {
      this.adopt(await sessions.state(this.id, FIRST_ENTRIES))
      if (this.first > 0) {
        // The end is drawn before anything else is asked for.
        await leisure()
        await this.fetchOlder()
      }
    } catch (error) {
      this.error = error instanceof ApiError ? error : new ApiError(0, 'failed', String(error))
      this.loading = null
      this.facts.emit()
    }
  }

  private async fetchOlder(): Promise<void> {
    while (this.first > 0) {
      const told = await sessions.state(this.id, MORE_ENTRIES, this.first)
      if (told.entries.length === 0) return
      this.prepend(hydrate({ entries: told.entries }).state.entries, told.firstEntry)
    }
  }

  private adopt(told: Parameters<typeof hydrate>[0]): void {
    const { state, first } = hydrate(told)
    this.state = state
    this.first = first
    this.loaded = true
    this.error = null
    this.flush()
    this.thread.emit()
    this.facts.emit()
  }

  private prepend(older: Entry[], first: number): void {
    const { state } = this
    state.entries = older.concat(state.entries)
    index(state)
    this.first = first
    this.thread.emit()
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
      if (frame.seq <= this.state.last_seq) continue
      if (frame.from > this.state.last_seq + 1) {
        this.waiting = frames.slice(at)
        void this.fillGap()
        break
      }
      this.apply(frame, changes)
    }
    this.tell(changes)
  }

  private apply(frame: Frame, changes: Changes): void {
    const before = this.state.pending.size
    reduce(this.state, frame.event, changes)
    if (this.state.pending.size > before) {
      for (const id of this.state.pending.keys()) {
        if (!this.arrivals.has(id)) this.arrivals.set(id, performance.now())
      }
    }
  }

  /** Ask for what this tab may have missed. */
  async catchUp(): Promise<void> {
    if (this.loaded) await this.fillGap()
  }

  private async fillGap(): Promise<void> {
    try {
      const { events } = await sessions.events(this.id, this.state.last_seq, PAGE)
      const changes = new Changes()
      for (const event of events) if ((event.seq ?? 0) > this.state.last_seq) reduce(this.state, event, changes)
      this.tell(changes)
      if (events.length) this.schedule()
    } catch {
      setTimeout(() => this.schedule(), 1000)
    }
  }

  private tell(changes: Changes): void {
    if (changes.appended) this.thread.emit()
    if (changes.facts || changes.appended) this.facts.emit()
    for (const row of [...changes.entries, ...changes.terminals]) {
      for (const listener of this.rows.get(row) ?? []) listener()
    }
  }

  /** Be told when one row or one terminal changes. */
  watch(row: Entry | Terminal, listener: () => void): () => void {
    const listeners = this.rows.get(row) ?? new Set()
    this.rows.set(row, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.rows.delete(row)
    }
  }

  /** Fold events in at once: for looking back. */
  replay(state: SessionState): void {
    this.state = state
    this.first = 0
    this.loaded = true
    this.thread.emit()
    this.facts.emit()
  }
}

function leisure(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof requestIdleCallback === 'undefined') setTimeout(resolve, 300)
    else requestIdleCallback(() => resolve(), { timeout: 1000 })
  })
}

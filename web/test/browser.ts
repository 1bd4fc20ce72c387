// As much of a browser as the live part of the page asks for, and a server behind its `fetch`.

import { vi } from 'vitest'
import { LIMITS } from '../src/core/generated/limits'
import type { Json } from '../src/core/generated/content'
import type { Event } from '../src/core/generated/events'
import { reduce } from '../src/core/session/fold'
import { newState } from '../src/core/session/state'
import type { Frame } from '../src/live/stream_reader'

class FakeStorage {
  private readonly items = new Map<string, string>()
  getItem(key: string): string | null { return this.items.get(key) ?? null }
  setItem(key: string, value: string): void { this.items.set(key, value) }
}

/** Whether the window is wide, and the event when that changes. */
export const wide = Object.assign(new EventTarget(), { matches: true })

export function resize(matches: boolean): void {
  wide.matches = matches
  wide.dispatchEvent(Object.assign(new Event('change'), { matches }))
}

/** Globals of a window; animation frames come as timers do. */
export function openWindow(): void {
  vi.stubGlobal('localStorage', new FakeStorage())
  vi.stubGlobal('sessionStorage', new FakeStorage())
  vi.stubGlobal('requestAnimationFrame', (run: () => void) => setTimeout(run, 1))
  vi.stubGlobal('window', Object.assign(new EventTarget(), { matchMedia: () => wide }))
  vi.stubGlobal('document', Object.assign(new EventTarget(), { hidden: false }))
}

/** Holds sessions as what happened in them, and answers what the page asks about them. */
export class FakeServer {
  readonly sessions = new Map<string, Event[]>()
  readonly asked: string[] = []
  /** How the list tells them, beyond their ids. */
  readonly summaries = new Map<string, Json>()
  /** Called before a request is answered: it may wait, or throw to fail it. */
  before: (path: string) => Promise<void> | void = () => undefined

  constructor() {
    vi.stubGlobal('fetch', async (path: string) => {
      this.asked.push(path)
      await this.before(path)
      return new Response(JSON.stringify(this.answer(new URL(path, 'http://server'))))
    })
  }

  /** Something happens in a session; the frame that tells of it. */
  tell(session: string, ...events: Event[]): Frame[] {
    const all = this.sessions.get(session) ?? []
    this.sessions.set(session, all)
    return events.map((event) => {
      const seq = all.push(event)
      event.seq = seq
      return frame(session, event, seq)
    })
  }

  private answer(url: URL): unknown {
    const [, , , id, what] = url.pathname.split('/')
    if (id === undefined) return this.list()
    const events = this.sessions.get(decodeURIComponent(id)) ?? []
    const number = (name: string) => Number(url.searchParams.get(name) ?? Infinity)
    if (what !== 'events') return { ...state(events, number('entries'), number('before')), updatedAt: this.summaries.get(id)?.updatedAt ?? '' }
    const after = number('after')
    return { events: structuredClone(events.slice(after, after + number('limit'))), last: events.length }
  }

  private list(): unknown {
    const sessions = [...this.sessions].map(([id, events]) => ({
      id, status: 'idle', archived: false, cwd: '/w', agent: 'demo', title: id, lastSeq: events.length,
      createdAt: '', updatedAt: '', ...this.summaries.get(id),
    }))
    return { sessions, next: null }
  }
}

export function frame(session: string, event: Event, from: number, seq = from): Frame {
  return { position: '', session, seq, from, event: { ...structuredClone(event), seq } }
}

function state(events: Event[], entries: number, before: number): Json {
  const folded = newState()
  // It has what it does not hold in its store.
  const limits = { ...LIMITS, thread: Infinity, entries: Infinity }
  for (const event of structuredClone(events)) reduce(folded, event, undefined, limits)
  const end = Math.min(before, folded.entries.length)
  const first = Math.max(0, end - entries)
  return {
    lastSeq: folded.lastSeq, status: 'running', turns: folded.turns, queue: folded.queue,
    pending: [...folded.pending.values()], entryCount: folded.entries.length, firstEntry: first,
    entries: folded.entries.slice(first, end),
  }
}

/** Until something is true, for as long as a busy machine may need. */
export function until(check: () => boolean): Promise<void> {
  return vi.waitFor(() => { if (!check()) throw new Error('not yet') }, { timeout: 8000, interval: 5 })
}

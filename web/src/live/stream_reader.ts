// Reads the server-sent events of all sessions: one reader for all tabs.

import type { Event } from '../core/generated/events'
import { SseParser } from '../core/sse'

export interface Frame {
  /** Where the stream can be taken up again after this frame. */
  position: string
  session: string
  seq: number
  /** The first event number of a joined frame. */
  from: number
  event: Event
}

export type Link = 'connecting' | 'online' | 'offline' | 'refused'

export interface Sink {
  frames(frames: Frame[]): void
  link(link: Link): void
  /** The server cannot continue from our cursor: everything must be loaded again. */
  reset(): void
  /** Something about sessions changed that is not one of their events: a title, or a new session. */
  listed(): void
  /** The server cannot reach its database: what is delayed by that; null when it can again. */
  away(sentence: string | null): void
}

const MAX_WAIT = 10_000

/** Reads `/api/events` while it is wanted, and resumes where it was after an interruption. */
export class StreamReader {
  private position: string | null = null
  private abort = new AbortController()
  private failures = 0

  constructor(
    private readonly token: string,
    private readonly sink: Sink,
    position: string | null = null,
  ) {
    this.position = position
    void this.run()
  }

  stop(): void {
    this.abort.abort()
  }

  private async run(): Promise<void> {
    while (!this.abort.signal.aborted) {
      const refused = await this.read().catch(() => false)
      if (this.abort.signal.aborted) return
      if (refused) return this.sink.link('refused')
      this.sink.link('offline')
      await pause(Math.min(MAX_WAIT, 250 * 2 ** Math.min(this.failures++, 6)) * (0.7 + Math.random() * 0.6))
      this.sink.link('connecting')
    }
  }

  /** One connection, to its end; whether the server does not know us. */
  private async read(): Promise<boolean> {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${this.token}`,
      Accept: 'text/event-stream',
    }
    if (this.position !== null) headers['Last-Event-ID'] = this.position
    const response = await fetch('/api/events', { headers, signal: this.abort.signal, cache: 'no-store' })
    if (response.status === 401 || response.status === 403) return true
    if (!response.ok || response.body === null) return false
    this.failures = 0
    this.sink.link('online')
    await this.drain(response.body)
    return false
  }

  private async drain(body: ReadableStream<Uint8Array>): Promise<void> {
    const parser = new SseParser()
    const decoder = new TextDecoder()
    const reader = body.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      this.take(parser.feed(decoder.decode(value, { stream: true })))
    }
  }

  private take(events: { id: string | null; event: string; data: string }[]): void {
    const frames: Frame[] = []
    for (const { id, event, data } of events) {
      if (id !== null) this.position = id
      if (event === 'reset') this.sink.reset()
      else if (event === 'message') frames.push(decode(data, this.position ?? ''))
      else if (event === 'store') this.sink.away((JSON.parse(data) as { away: string | null }).away)
      else if (event !== 'position') this.sink.listed()
    }
    if (frames.length) this.sink.frames(frames)
  }
}

type Numbered = Event & { firstSeq?: number }

function decode(data: string, position: string): Frame {
  const { sessionId, event } = JSON.parse(data) as { sessionId: string; event: Numbered }
  const seq = event.seq ?? 0
  return { position, session: sessionId, seq, from: event.firstSeq ?? seq, event }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

// Parses server-sent events from text that comes in pieces. Pure: it reads nothing itself.

export interface SseEvent { id: string | null; event: string; data: string }

export class SseParser {
  private rest = ''
  private id: string | null = null
  private event = ''
  private data: string[] = []

  /** The events that are whole now. */
  feed(chunk: string): SseEvent[] {
    const lines = (this.rest + chunk).split('\n')
    this.rest = lines.pop() ?? ''
    const events: SseEvent[] = []
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line !== '') this.field(line)
      else this.dispatch(events)
    }
    return events
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') this.data.push(value)
    else if (name === 'id') this.id = value
    else if (name === 'event') this.event = value
  }

  private dispatch(events: SseEvent[]): void {
    if (this.data.length) {
      events.push({ id: this.id, event: this.event || 'message', data: this.data.join('\n') })
    }
    this.event = ''
    this.data = []
  }
}

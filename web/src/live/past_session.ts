// A stored session that is looked back at: what it was after some of its events. Nothing in it can be
// answered or stopped.

import type { Event } from '../core/generated/events'
import { reduce } from '../core/session/fold'
import { Changes } from '../core/session/thread'
import { newState } from '../core/session/state'
import { LiveSession } from './session'

export class PastSession extends LiveSession {
  override readonly past = true
  private folded = 0

  /** Show the session after its first `count` events. Going forward changes rows; going back starts over. */
  show(events: Event[], count: number): void {
    const fresh = !this.loaded || count < this.folded
    if (fresh) this.state = newState()
    const changes = new Changes()
    for (const event of events.slice(fresh ? 0 : this.folded, count)) reduce(this.state, event, changes)
    this.folded = count
    this.loaded = true
    this.tell(changes)
    if (!fresh) return
    this.thread.emit()
    this.facts.emit()
  }
}

// A stored session on a time line: its events folded up to a moment one chooses.

import { useEffect, useState } from 'react'
import type { Event } from '../../core/generated/events'
import { moment } from '../../core/text/format'
import { titleOf } from '../../core/session/listing'
import { sessions } from '../../live/api'
import { PastSession } from '../../live/past_session'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { shell } from '../shell/shell'
import { Transcript } from '../thread/transcript'

// Long pauses are shortened.
const LONGEST_PAUSE = 1.5
const SPEEDS = [1, 4, 16]

export function Replay({ id }: { id: string }) {
  const [events, setEvents] = useState<Event[]>([])
  const [at, setAt] = useState(0)
  const [speed, setSpeed] = useState(0)
  const [session] = useState(() => new PastSession(id))
  useEffect(() => void fetchAll(id).then((all) => { setEvents(all); setAt(all.length) }, (error: unknown) => shell.fail(error)), [id])
  useEffect(() => session.show(events, at), [session, events, at])
  useEffect(() => {
    if (speed === 0) return
    if (at >= events.length) return setSpeed(0)
    const gap = (events[at]?.at ?? 0) - (events[at - 1]?.at ?? 0)
    const timer = setTimeout(() => setAt(at + 1), (Math.min(LONGEST_PAUSE, Math.max(0, gap)) * 1000) / speed)
    return () => clearTimeout(timer)
  }, [speed, at, events])
  const summary = store.summaries.get(id)
  const play = (next: number) => {
    if (at >= events.length) setAt(0)
    setSpeed(speed === next ? 0 : next)
  }
  return (
    <main className="thread replaying" aria-label="Replay">
      <header className="head">
        <h1>Replay: <Plain text={summary ? titleOf(summary) : id} /></h1>
        <div className="headtools"><a className="button" href={paths.session(id)}>Back to the session</a></div>
      </header>
      <Transcript session={session} />
      <div className="replaybar" role="group" aria-label="Timeline">
        <button type="button" className="ghost" aria-label="Previous event" disabled={at === 0} onClick={() => setAt(at - 1)}><Icon name="chevron" className="back" /></button>
        <button type="button" className="ghost" aria-label="Next event" disabled={at >= events.length} onClick={() => setAt(at + 1)}><Icon name="chevron" /></button>
        {SPEEDS.map((times) => (
          <button key={times} type="button" aria-pressed={speed === times} onClick={() => play(times)}><Icon name={speed === times ? 'pause' : 'play'} /> {times}×</button>
        ))}
        <input type="range" aria-label="Position" min={0} max={events.length} value={at} onChange={(e) => { setSpeed(0); setAt(Number(e.target.value)) }} />
        <output>{at} of {events.length}<span className="wide"> · {moment(events[at - 1]?.at ?? 0)}</span></output>
      </div>
    </main>
  )
}

async function fetchAll(id: string): Promise<Event[]> {
  const all: Event[] = []
  for (;;) {
    const { events, last } = await sessions.events(id, all.at(-1)?.seq ?? 0, 5000)
    all.push(...events)
    if (events.length === 0 || (all.at(-1)?.seq ?? 0) >= last) return all
  }
}

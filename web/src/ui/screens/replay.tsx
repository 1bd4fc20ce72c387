// A stored session on a time line: its events folded up to a moment one chooses.

import { useEffect, useMemo, useState, type KeyboardEvent } from 'react'
import type { Event } from '../../core/generated/events'
import { moment } from '../../core/text/format'
import { marksOf, nextMark, turnAt, type Mark, type MarkKind } from '../../core/session/timeline'
import { reveal } from '../../core/text/safe_text'
import { titleOf } from '../../core/session/listing'
import { sessions } from '../../live/api'
import { PastSession } from '../../live/past_session'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { shell } from '../shell/shell'
import { Transcript } from '../thread/transcript'
import { FilesThen } from './files_then'

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
  const marks = useMemo(() => marksOf(events), [events])
  const [files, setFiles] = useState(false)
  const turn = useMemo(() => turnAt(events, at), [events, at])
  const jump = (to: number) => {
    setSpeed(0)
    setAt(Math.max(0, Math.min(events.length, to)))
  }
  const onKey = (event: KeyboardEvent) => {
    const to = keyed(event, marks, at, events.length)
    if (to === null) return
    event.preventDefault()
    jump(to)
  }
  const summary = store.summaries.get(id)
  const play = (next: number) => {
    if (at >= events.length) setAt(0)
    setSpeed(speed === next ? 0 : next)
  }
  return (
    <main className="thread replaying" aria-label="Replay" onKeyDown={onKey}>
      <header className="head">
        <h1>Replay: <Plain text={summary ? titleOf(summary) : id} /></h1>
        <div className="headtools"><button type="button" aria-expanded={files} disabled={turn === null} onClick={() => setFiles(!files)}><Icon name="file" /> Files of this turn</button> <a className="button" href={paths.session(id)}>Back to the session</a></div>
      </header>
      {files && turn !== null ? <FilesThen key={turn} id={id} turn={turn} close={() => setFiles(false)} /> : <Transcript session={session} />}
      <div className="replaybar" role="group" aria-label="Timeline">
        <button type="button" className="ghost" aria-label="Previous event" disabled={at === 0} onClick={() => setAt(at - 1)}><Icon name="chevron" className="back" /></button>
        <button type="button" className="ghost" aria-label="Next event" disabled={at >= events.length} onClick={() => setAt(at + 1)}><Icon name="chevron" /></button>
        {SPEEDS.map((times) => (
          <button key={times} type="button" aria-pressed={speed === times} onClick={() => play(times)}><Icon name={speed === times ? 'pause' : 'play'} /> {times}×</button>
        ))}
        <div className="track">
          <input type="range" aria-label="Position" aria-describedby="replaykeys" autoFocus min={0} max={events.length} value={at} onChange={(e) => jump(Number(e.target.value))} />
          <Marks marks={marks} count={events.length} go={jump} />
        </div>
        <span id="replaykeys" hidden>Arrow keys move by one event, with Shift from turn to turn, with Alt from mark to mark.</span>
        <output>{at} of {events.length}<span className="wide"> · {moment(events[at - 1]?.at ?? 0)}</span></output>
      </div>
    </main>
  )
}

/** Where a key leads; the range has arrows of its own, which do the same. */
function keyed({ key, shiftKey, altKey, ctrlKey, metaKey, target }: KeyboardEvent, marks: Mark[], at: number, count: number): number | null {
  const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0
  const isField = target instanceof HTMLElement && target.closest('input:not([type=range]), textarea, select, pre') !== null
  if (step === 0 || ctrlKey || metaKey || isField) return null
  if (!shiftKey && !altKey) return at + step
  const kind: MarkKind | undefined = shiftKey ? 'turn' : undefined
  return nextMark(marks, at, step, kind)?.at ?? (step > 0 ? count : 0)
}

const NAMES: Record<MarkKind, string> = { turn: 'turn', question: 'question', edit: 'edit', cost: 'cost', failed: 'failure' }

/** The bar is a picture of what the keys reach: only a mouse presses marks. */
function Marks({ marks, count, go }: { marks: Mark[]; count: number; go: (at: number) => void }) {
  return (
    <div className="marks" aria-hidden="true">
      {marks.map(({ at, kind, words }) => (
        <i key={`${at}${kind}`} className={`tick ${kind}`} title={`${NAMES[kind]}: ${reveal(words)}`} style={{ left: `${(at / Math.max(1, count)) * 100}%` }} onClick={() => go(at)} />
      ))}
    </div>
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

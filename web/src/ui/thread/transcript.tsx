// The thread of a session: only the rows that can be seen are in the page, and as long as one is at
// the end, the end stays in view.

import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react'
import { endingBehind } from '../../core/session/endings'
import { plural } from '../../core/text/format'
import { leading } from '../../core/permissions/questions'
import type { Entry, Pending, SessionState } from '../../core/session/state'
import { rowOf } from '../../core/session/rows'
import { runningTurn } from '../../core/session/state'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { ElicitationForm } from '../permissions/elicitation_form'
import { EntryView } from './entry_view'
import { RunHead, isWord, keyOfRow, useShape } from './runs'
import { DecisionLines, TurnFooter, useThreadRecords } from './thread_records'
import { TurnLine } from './turn_line'
import { FindBar } from './find_bar'
import { Icon, Spinner } from '../common/icons'
import { ErrorBoundary } from '../common/error_boundary'
import { PermissionCard, type Alike } from '../permissions/permission_card'
import { SubagentView, nesting, subagentsAfter } from './subagents'

const END = 60

interface Props { session: LiveSession; entry?: number | null; find?: boolean }

export function Transcript({ session, entry = null, find = false }: Props) {
  useSignal(session.thread)
  useSignal(session.facts)
  const { state, first } = session
  const pending = leading(state.pending)
  const children = subagentsAfter(state)
  const { records, decisions } = useThreadRecords(session)
  const { shape, toggle } = useShape(session, (at) => children.has(at) || nesting(state, at) > 0 || (decisions.get(at)?.some(isWord) ?? false))
  const count = shape.length + pending.length
  const scroller = useRef<HTMLDivElement>(null)
  // All rows are laid out again when this function is another one.
  const asked = pending.map(({ id }) => id).join(' ')
  const getItemKey = useCallback(
    (at: number) => (at < shape.length ? keyOfRow(shape[at], first) : asked.split(' ')[at - shape.length] ?? at),
    [state, first, asked, shape],
  )
  const rows = useVirtualizer<HTMLDivElement, HTMLElement>({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (shape[at]?.heads ? 40 : estimate(state.entries[shape[at]?.at ?? -1])),
    getItemKey,
    overscan: usePainted(session) ? 6 : 1,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: END,
    paddingStart: 16,
    paddingEnd: 12,
    initialOffset: () => Number.MAX_SAFE_INTEGER,
  })
  useStartAtEnd(session, rows, count, entry)
  useStayAtEnd(scroller)
  const show = (place: number, align: 'center' | 'start' = 'center') => {
    const at = rowOf(shape, place - first)
    const row = shape[at]
    if (row === undefined || row.count === 1) return rows.scrollToIndex(at, { align })
    toggle(row)
    // Its rows are there with the next frame.
    const within = place - first - row.at
    requestAnimationFrame(() => requestAnimationFrame(() => rows.scrollToIndex(at + within, { align })))
  }
  const marked = useDeepLink(session, show, entry)
  useReadFromTop(session, rows, asked.split(' ')[0] ?? '', shape.length)
  const { away, seen } = useAway(rows, count)
  const atTop = session.canLookBack && away && rows.getVirtualItems()[0]?.index === 0
  useEffect(() => { if (atTop) void session.lookBack() }, [atTop, session, first])
  return (
    <div className="transcript">
      {find && <FindBar session={session} show={(place) => show(first + place)} scroller={scroller} />}
      <div className="scroller" ref={scroller} role={count ? 'feed' : 'region'} aria-label="Transcript" aria-busy={runningTurn(state) !== null} tabIndex={0}>
        <div className="rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const row = shape[item.index]
            const at = row?.at ?? state.entries.length + item.index - shape.length
            const closed = row !== undefined && row.count > 1
            const lines = closed ? undefined : decisions.get(at)
            return (
            <article
              key={item.key}
              data-index={item.index}
              data-place={first + at}
              ref={rows.measureElement}
              className={`row ${marked === first + at ? 'marked' : ''}`}
              data-depth={nesting(state, at) || undefined}
              style={{ transform: `translateY(${item.start}px)` }}
              tabIndex={-1}
              aria-posinset={first + at + 1}
              aria-setsize={first + state.entries.length + pending.length}
              aria-label={rowLabel(state, at)}
            >
              {row !== undefined && row.heads > 0 && <RunHead session={session} row={row} toggle={() => toggle(row)} />}
              {!closed && <Row session={session} at={at} pending={pending} />}
              {lines !== undefined && <DecisionLines decided={lines} />}
              {children.get(at)?.map((child) => <ErrorBoundary key={child.sessionId} name="subagent" of={child}><SubagentView session={session} child={child} /></ErrorBoundary>)}
              <Ending state={state} at={at + (row?.count ?? 1) - 1} />
              <TurnFooter session={session} at={at + (row?.count ?? 1) - 1} records={records} />
            </article>
            )
          })}
        </div>
        <TurnLine session={session} />
      </div>
      {atTop && <button type="button" className="older" onClick={() => void session.lookBack()}><Spinner /> Older entries</button>}
      {away && (
        <button type="button" className="latest" onClick={() => rows.scrollToEnd()}>
          <Icon name="down" /> Latest{count > seen && ` (${plural(count - seen, 'new row')})`}
        </button>
      )}
    </div>
  )
}

function Row({ session, at, pending }: { session: LiveSession; at: number; pending: Pending[] }) {
  const entry = session.state.entries[at]
  if (entry !== undefined) return <ErrorBoundary name="entry" of={entry}><EntryView session={session} entry={entry} place={session.first + at} /></ErrorBoundary>
  const place = at - session.state.entries.length
  const asked = pending[place]
  if (asked === undefined) return null
  return <PendingView session={session} pending={asked} cwd={session.state.cwd} place={place} />
}

interface PendingProps { session: LiveSession; pending: Pending; cwd: string; place: number; since?: number | undefined; alike?: Alike[] | undefined }

export function PendingView({ session, pending, cwd, place, since, alike }: PendingProps) {
  return (
    <ErrorBoundary name="question" of={pending}>
      {pending.kind === 'permission'
        ? <PermissionCard session={session} pending={pending} cwd={cwd} place={place} since={since} alike={alike} />
        : <ElicitationForm session={session} pending={pending} place={place} since={since} />}
    </ErrorBoundary>
  )
}

// A line of the thread, and how many characters it has at the width most people read at.
const LINE_PX = 21
const LINE_CHARS = 110

/** The likely height of a row before it is drawn: the better the estimate, the less moves. */
function estimate(entry: Entry | undefined): number {
  if (entry === undefined) return 220
  if (entry.type === 'thought' || entry.type === 'notice') return 36
  if (entry.type === 'tool_call') return entry.content.length ? 160 : 40
  if (entry.type !== 'user' && entry.type !== 'agent') return 90
  const known = estimates.get(entry)
  if (known !== undefined) return known
  const lines = entry.pieces.reduce((sum, piece) => sum + (typeof piece === 'string' ? linesOf(piece) : 5), 0)
  const height = lines * LINE_PX + (entry.type === 'user' ? 60 : 22)
  estimates.set(entry, height)
  return height
}

// All rows are gone through whenever one is added; what a row says is looked at once.
const estimates = new WeakMap<Entry, number>()

function linesOf(text: string): number {
  return text.slice(0, 20_000).split('\n').reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE_CHARS)), 0)
}

const LABELS: Record<Entry['type'], string> = {
  user: 'You', agent: 'Agent', thought: 'Thought', tool_call: 'Tool call', plan: 'Plan', notice: 'Notice',
  compaction: 'Compaction', peer_message: 'Message between sessions', reset: 'Memory lost', error: 'Error', unknown: 'Unknown update',
}

function rowLabel(state: SessionState, at: number): string {
  const entry = state.entries[at]
  return entry === undefined ? 'Question for you' : LABELS[entry.type]
}

/** How an earlier turn ended, if that was out of the ordinary. */
function Ending({ state, at }: { state: SessionState; at: number }) {
  const text = endingBehind(state, at)
  return text === null ? null : <p className="turnend"><Icon name="stop" /> {text}</p>
}

/** Whether the rows in view were painted: those around them come after that. */
function usePainted(session: LiveSession): boolean {
  const [painted, setPainted] = useState(false)
  const { loaded } = session
  useEffect(() => {
    if (!loaded) return
    let frame = requestAnimationFrame(() => { frame = requestAnimationFrame(() => setPainted(true)) })
    return () => cancelAnimationFrame(frame)
  }, [loaded])
  return painted
}

type Rows = Virtualizer<HTMLDivElement, HTMLElement>

function useStartAtEnd(session: LiveSession, rows: Rows, count: number, entry: number | null): void {
  const settled = useRef<LiveSession | null>(null)
  useLayoutEffect(() => {
    if (!session.loaded || count === 0 || settled.current === session) return
    settled.current = session
    if (entry === null) rows.scrollToEnd()
    // Rows are measured as they are drawn: the end is where it is only then.
    if (entry === null) requestAnimationFrame(() => requestAnimationFrame(() => rows.scrollToEnd()))
  })
}

/** When something appears below it, the thread loses room at its end: what was in view there stays. */
function useStayAtEnd(scroller: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const here = scroller.current
    if (here === null) return
    let height = here.clientHeight
    const observer = new ResizeObserver(() => {
      const lost = height - here.clientHeight
      const rest = here.scrollHeight - here.clientHeight - here.scrollTop
      height = here.clientHeight
      if (lost <= 0 || rest > lost + 1) return
      here.scrollTop = here.scrollHeight
      // A card that has shrunk with it is measured when it is drawn.
      requestAnimationFrame(() => requestAnimationFrame(() => { here.scrollTop = here.scrollHeight }))
    })
    observer.observe(here)
    return () => observer.disconnect()
  }, [scroller])
}

const FRAMES_TO_SETTLE = 4

/** A question that is taller than the window is shown from its top, not from its end. */
function useReadFromTop(session: LiveSession, rows: Rows, request: string, entries: number): void {
  const { loaded } = session
  useEffect(() => {
    if (!loaded || request === '') return
    let left = FRAMES_TO_SETTLE
    const look = () => {
      // Rows are measured as they are drawn, and the end follows.
      if (--left > 0) return void (frame = requestAnimationFrame(look))
      const { scrollElement: window } = rows
      const card = [...window?.querySelectorAll<HTMLElement>('.card[data-request]') ?? []].find(({ dataset }) => dataset.request === request)
      const tooTall = window !== null && card !== undefined && card.offsetHeight > window.clientHeight
      if (tooTall && rows.isAtEnd(END)) rows.scrollToIndex(entries, { align: 'start' })
    }
    let frame = requestAnimationFrame(look)
    return () => cancelAnimationFrame(frame)
  }, [session, rows, loaded, request])
}

function useDeepLink(session: LiveSession, show: (place: number) => void, entry: number | null): number | null {
  const [marked, setMarked] = useState<number | null>(null)
  const { first } = session
  const ready = session.loaded && entry !== null && entry >= first
  useEffect(() => {
    if (session.loaded && entry !== null && entry < first) void session.lookBack()
  }, [session, session.loaded, entry, first])
  useEffect(() => {
    if (!ready || entry === null) return
    show(entry)
    setMarked(entry)
    const timer = setTimeout(() => setMarked(null), 2500)
    return () => clearTimeout(timer)
  }, [ready, entry, session])
  return marked
}

/** Whether one has scrolled away from the end, and how many rows there were then. */
function useAway(rows: Rows, count: number): { away: boolean; seen: number } {
  const away = count > 0 && rows.scrollElement !== null && rows.scrollOffset !== null && !rows.isAtEnd(END)
  const seen = useRef(count)
  if (!away) seen.current = count
  return { away, seen: seen.current }
}

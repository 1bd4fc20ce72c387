// What the session, or one of its turns, changed in the folder: read, kept, put back and commented on. Next to the
// thread it is one column; on its own screen the files are at the left.

import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { treeOrder } from '../../core/changes/file_tree'
import { fingerprint, hunksOf, type ReviewHunk } from '../../core/changes/hunks'
import { bytes, plural, within } from '../../core/text/format'
import { entryText, runningTurn } from '../../core/session/state'
import { reveal } from '../../core/text/safe_text'
import { sessions, type FileChange, type FileChanges } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { useRefetch, type Refetched } from '../common/refetch'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { go, paths } from '../shell/route'
import { changeSettings, settings, settingsChanged } from '../shell/settings'
import { Counts, FileCard, type FileActions } from './file_card'
import { FileList, viewedWords } from './file_list'
import { changeReview, pendingReview, reviewsChanged, type PendingComment } from './pending_review'
import { putBack, settleRestores } from './restores'
import { ReviewBar } from './review_bar'
import { useReviewKeys } from './review_keys'

export type AllChanges = Refetched<FileChanges>

/** `all` is what the whole session changed, which the tab counts. */
export function ChangesView({ session, all, wide = false }: { session: LiveSession; all: AllChanges; wide?: boolean }) {
  const version = useSignal(session.facts)
  useSignal(reviewsChanged)
  useSignal(settingsChanged)
  const [turn, setTurn] = useState('')
  const ofTurn = useRefetch(`${session.id}:${turn}`, turn ? version : 0, async () => (turn ? sessions.changes(session.id, turn) : null))
  const asked = turn ? ofTurn : all
  const told = asked.value
  const { cwd } = session.state
  const changes = useMemo(() => inOrder(told?.changes ?? [], cwd), [told, cwd])
  const whole = useMemo(() => inOrder(all.value?.changes ?? [], cwd), [all.value, cwd])
  const again = () => {
    all.again()
    if (turn) ofTurn.again()
  }
  const columns = useWide('(min-width: 1100px)') && wide
  const roomy = useWide('(min-width: 700px)')
  const split = wide && roomy && settings().diffs === 'split'
  const marks = useMarks(session, changes)
  const { undone } = pendingReview(session.id)
  const waiting = useMemo(() => new Set(undone.flatMap(({ waits }) => waits ?? [])), [undone])
  const undo = useCallback((change: FileChange | null, hunk: ReviewHunk | null) => {
    const what = { ...(turn && { turnId: turn }), ...(hunk?.id ? { hunks: [hunk.id] } : change && { paths: [change.path] }) }
    // Without snapshots, nothing can bring it back.
    if (!told?.tracked && !window.confirm(`Put back ${reveal(change === null ? 'all files Dragoman wrote' : within(change.path, session.state.cwd))}? This cannot be undone.`)) return
    const subject = { path: change?.path ?? '', start: hunk?.start ?? 0, end: hunk?.end ?? 0 }
    void putBack(session, what, subject, hunk?.key ?? change?.path ?? '', again)
  }, [session, turn, told, all, ofTurn])
  useSettling(session)
  const actions: FileActions = { ...marks.actions, putBack: undo }
  const files = useFiles(changes, marks.folded, columns)
  const list = <FileList changes={changes} cwd={cwd} viewed={marks.viewed} comments={marks.counts} current={files.current} show={files.show} />
  useReviewKeys({ wide, ...files.keys })
  return (
    <div className={`changes ${wide ? 'wide' : ''} ${columns ? 'columns' : ''}`}>
      <Head session={session} told={told} changes={changes} viewed={marks.viewed.size} turn={turn} choose={setTurn} wide={wide} roomy={roomy} undo={() => undo(null, null)} waits={waiting.has('')} />
      {columns && changes.length > 0 && list}
      <div className="files" ref={files.scroller} tabIndex={0} role="region" aria-label="Changes by file">
        <div className="filerows" style={{ height: files.drawn.getTotalSize() }}>
          {files.drawn.getVirtualItems().map(({ index, key, start }) => {
            const change = changes[index - 1]
            return (
              <div key={key} data-index={index} ref={files.drawn.measureElement} className="filerow" style={{ top: start }}>
                {index === 0 && <Preface asked={asked} turn={turn} cwd={cwd} changes={changes} />}
                {index === 0 && !columns && changes.length > 1 && list}
                {change !== undefined && (
                  <FileCard
                    session={session.id} cwd={cwd} change={change} at={index - 1} split={split} tracked={told?.tracked ?? false} waiting={waiting}
                    viewed={marks.viewed.has(change.path)} folded={marks.folded(change)} kept={marks.kept} comments={marks.comments.get(change.path) ?? NONE} {...actions}
                  />
                )}
              </div>
            )
          })}
        </div>
      </div>
      {/* Until the changes are known, it is not known either which comments are stale. */}
      {all.value !== null && <ReviewBar session={session} changes={whole} wide={wide} again={again} show={(path) => files.show(changes.findIndex((change) => change.path === path))} />}
    </div>
  )
}

const NONE: PendingComment[] = []

function inOrder(changes: FileChange[], cwd: string): FileChange[] {
  return treeOrder(changes.map(({ path }) => within(path, cwd))).flatMap((at) => changes[at] ?? [])
}

function useWide(query: string): boolean {
  const [matches, set] = useState(() => window.matchMedia(query).matches)
  useEffect(() => {
    const media = window.matchMedia(query)
    const look = () => set(media.matches)
    media.addEventListener('change', look)
    return () => media.removeEventListener('change', look)
  }, [query])
  return matches
}

/** What is marked as viewed and kept, and what is folded because of it. */
function useMarks(session: LiveSession, changes: FileChange[]) {
  const review = pendingReview(session.id)
  const [folds, setFolds] = useState<ReadonlyMap<string, boolean>>(new Map())
  const viewed = useMemo(() => new Set(changes.filter((change) => review.viewed[change.path] === fingerprint(change)).map(({ path }) => path)), [changes, review.viewed])
  const kept = useMemo(() => new Set(review.kept), [review.kept])
  const comments = useMemo(() => byPath(review.comments), [review.comments])
  const counts = useMemo(() => new Map([...comments].map(([path, each]) => [path, each.length])), [comments])
  const actions = useMemo(() => ({
    view: (change: FileChange, seen: boolean) => {
      mark(session.id, change, seen)
      setFolds((now) => new Map(now).set(change.path, seen))
    },
    fold: (change: FileChange, folded: boolean) => setFolds((now) => new Map(now).set(change.path, folded)),
    keep: (change: FileChange, hunk: ReviewHunk, keeps: boolean) => {
      const others = pendingReview(session.id).kept.filter((key) => key !== hunk.key)
      changeReview(session.id, { kept: keeps ? [...others, hunk.key] : others })
      const all = hunksOf(change).every(({ key }) => pendingReview(session.id).kept.includes(key))
      mark(session.id, change, all)
    },
  }), [session])
  const folded = (change: FileChange) => folds.get(change.path) ?? viewed.has(change.path)
  return { viewed, kept, comments, counts, folded, actions }
}

function byPath(comments: PendingComment[]): Map<string, PendingComment[]> {
  const found = new Map<string, PendingComment[]>()
  for (const comment of comments) found.set(comment.path, [...(found.get(comment.path) ?? []), comment])
  return found
}

function mark(session: string, change: FileChange, seen: boolean): void {
  const { [change.path]: _, ...others } = pendingReview(session).viewed
  changeReview(session, { viewed: seen ? { ...others, [change.path]: fingerprint(change) } : others })
}

/** Once no turn runs, what waited for its end has been put back, or was refused. Nobody knows before it is loaded. */
function useSettling(session: LiveSession): void {
  const busy = !session.loaded || runningTurn(session.state) !== null
  useEffect(() => { if (!busy) void settleRestores(session) }, [session, busy])
}

// ── files, and the way from one to the next ──────────────────────────────────────────────────

const LINE = 20
const MOST_ROWS = 300

function useFiles(changes: FileChange[], folded: (change: FileChange) => boolean, columns: boolean) {
  const scroller = useRef<HTMLDivElement>(null)
  const [current, setCurrent] = useState(-1)
  const stop = useRef('')
  const getItemKey = useCallback((at: number) => (at === 0 ? 'preface' : changes[at - 1]?.path ?? at), [changes])
  const drawn = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    count: changes.length + 1,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (at === 0 ? (columns ? 0 : Math.min(changes.length, 8) * 28) : estimate(changes[at - 1], folded)),
    getItemKey,
    overscan: 2,
  })
  const focus = (wanted: string, block: ScrollLogicalPosition) => {
    stop.current = wanted
    const file = Number(wanted.split(':')[0])
    setCurrent(file)
    const find = (tries: number) => {
      const found = scroller.current?.querySelector<HTMLElement>(`[data-stop="${wanted}"]`)
      if (found) {
        found.focus({ preventScroll: true })
        found.scrollIntoView({ block })
      } else if (tries > 0) {
        drawn.scrollToIndex(file + 1, { align: 'start' })
        requestAnimationFrame(() => find(tries - 1))
      }
    }
    find(30)
  }
  const show = (at: number) => { if (at >= 0) focus(`${at}:-1`, 'start') }
  const here = () => {
    const focused = document.activeElement?.closest<HTMLElement>('[data-stop]')?.dataset.stop
    if (focused !== undefined) stop.current = focused
    return stop.current
  }
  const act = (name: string) => {
    const found = scroller.current?.querySelector<HTMLElement>(`[data-stop="${here()}"]`)
    const place = name === 'viewed' ? found?.closest('.filecard') : found
    place?.querySelector<HTMLElement>(`[data-act="${name}"]`)?.click()
  }
  const keys = {
    moveHunk: (by: number) => {
      const stops = changes.flatMap((change, at) => (folded(change) || hunksOf(change).length === 0 ? [`${at}:-1`] : hunksOf(change).map((_, of) => `${at}:${of}`)))
      const at = stops.indexOf(here())
      const from = at >= 0 ? at + by : nearest(stops, stop.current, by)
      const next = stops[Math.min(Math.max(from, 0), stops.length - 1)]
      if (next !== undefined) focus(next, 'nearest')
    },
    moveFile: (by: number) => {
      const at = here() === '' ? -1 : Number(stop.current.split(':')[0])
      show(Math.min(Math.max(at + by, 0), changes.length - 1))
    },
    viewed: () => act('viewed'),
    comment: () => act('comment'),
    keep: () => act('keep'),
    putBack: () => act('putback'),
  }
  return { scroller, drawn, current, show, keys }
}

/** From a place that is none of the stops: to the first of its file, or the last of the one before. */
function nearest(stops: string[], from: string, by: number): number {
  if (from === '') return by > 0 ? 0 : stops.length - 1
  const file = Number(from.split(':')[0])
  const first = stops.findIndex((stop) => Number(stop.split(':')[0]) >= file)
  return by > 0 ? first : first - 1
}

function estimate(change: FileChange | undefined, folded: (change: FileChange) => boolean): number {
  if (change === undefined || folded(change)) return 48
  return 56 + change.hunks.reduce((height, { lines }) => height + 34 + Math.min(lines.length, MOST_ROWS) * LINE, 0)
}

// ── above the files ──────────────────────────────────────────────────────────────────────────

interface HeadProps {
  session: LiveSession
  told: FileChanges | null
  changes: FileChange[]
  viewed: number
  turn: string
  choose: (turn: string) => void
  wide: boolean
  /** Both versions have room side by side. */
  roomy: boolean
  undo: () => void
  waits: boolean
}

function Head({ session, told, changes, viewed, turn, choose, wide, roomy, undo, waits }: HeadProps) {
  const revertible = changes.filter((change) => change.revertible).length
  const [sure, setSure] = useState(false)
  useEffect(() => setSure(false), [turn, revertible])
  const added = changes.reduce((sum, change) => sum + change.added, 0)
  const removed = changes.reduce((sum, change) => sum + change.removed, 0)
  return (
    <div className="changeshead">
      <TurnChoice session={session} turn={turn} choose={choose} />
      {changes.length > 0 && (
        <div className="sums">
          <strong>{plural(changes.length, 'file')} changed</strong> <Counts added={added} removed={removed} />
          <span className="quiet">{viewedWords(viewed, changes.length)}</span>
          {told?.live && <span className="tag high">the turn is still running</span>}
          <div className="sumacts">
            {wide
              ? roomy && <Layouts />
              : <button type="button" className="small" onClick={() => go(paths.review(session.id))}><Icon name="read" /> Review</button>}
            {revertible > 0 && (waits
              ? <span className="tag high">put back after the turn</span>
              : sure
                ? <span className="sure" role="group" aria-label="Put back everything?">
                    <span>Put back {plural(revertible, 'file')}?</span>
                    <button type="button" className="danger small" autoFocus onClick={() => { setSure(false); undo() }}>Put back</button>
                    <button type="button" className="ghost small" onClick={() => setSure(false)}>Cancel</button>
                  </span>
                : <button type="button" className="small" onClick={() => setSure(true)}><Icon name="undo" /> {turn ? 'Put back turn' : 'Put back all'}</button>)}
          </div>
        </div>
      )}
    </div>
  )
}

function Layouts() {
  const { diffs } = settings()
  return (
    <div className="layouts" role="group" aria-label="Layout">
      <button type="button" className="ghost small" aria-pressed={diffs === 'unified'} onClick={() => changeSettings({ diffs: 'unified' })}>Unified</button>
      <button type="button" className="ghost small" aria-pressed={diffs === 'split'} onClick={() => changeSettings({ diffs: 'split' })}>Side by side</button>
    </div>
  )
}

/** What is to be known before one looks at the files. */
function Preface({ asked, turn, cwd, changes }: { asked: Refetched<FileChanges | null>; turn: string; cwd: string; changes: FileChange[] }) {
  const told = asked.value
  const alarming = changes.filter((change) => change.protected)
  if (told === null) return <p className="quiet preface">{asked.failure ? <Plain text={asked.failure} /> : 'Loading…'}</p>
  return (
    <div className="preface">
      {changes.length === 0 && <p className="empty">{turn ? 'No changes in this turn.' : 'No changes yet. Files edited in this session appear here.'}</p>}
      {alarming.length > 0 && (
        <p className="loud" role="alert"><Icon name="alert" /> <span><strong>{alarming.length === 1 ? 'A protected file was written:' : `${alarming.length} protected files were written:`}</strong>{' '}
          {alarming.slice(0, 5).map((change, at) => <span key={change.path}>{at > 0 && ', '}<code><Plain text={within(change.path, cwd)} /></code></span>)}{alarming.length > 5 && ' …'}</span></p>
      )}
      {told.problems.map(({ root, reason }) => <p key={root + reason} className="notice warning"><Icon name="alert" /> <span>Not watched: <code><Plain text={root} /></code>: <Plain text={reason} /></span></p>)}
      {!told.complete && <p className="notice warning"><Icon name="alert" /> Some changed files are not listed: there are too many.</p>}
      {told.leftOut.length > 0 && (
        <details className="leftout">
          <summary>{plural(told.leftOut.length, 'file')} left out: not kept, so changes to {told.leftOut.length === 1 ? 'it' : 'them'} are not shown</summary>
          <ul>{told.leftOut.slice(0, 200).map(({ path, size, reason }) => <li key={path}><code><Plain text={within(path, cwd)} /></code> <small>{reason && <Plain text={reason} />}{size ? ` ${bytes(size)}` : ''}</small></li>)}</ul>
        </details>
      )}
      {told.ignored.length > 0 && <p className="quiet ignored">Not watched because git ignores {told.ignoredCount === 1 ? 'it' : 'them'}: <Ignored told={told} cwd={cwd} /></p>}
    </div>
  )
}

/** The first names, and how many more. */
function Ignored({ told, cwd }: { told: FileChanges; cwd: string }) {
  const names = told.ignored.slice(0, 5)
  return <>
    {names.map((path, at) => <span key={path}>{at > 0 && ', '}<code><Plain text={within(path, cwd)} /></code></span>)}
    {told.ignoredCount > names.length && ` and ${told.ignoredCount - names.length} more`}
  </>
}

/** The prompts of the session: each began a turn. */
function TurnChoice({ session, turn, choose }: { session: LiveSession; turn: string; choose: (turn: string) => void }) {
  const turns = turnsOf(session)
  if (turns.length < 2) return null
  return (
    <label className="turnchoice"><span className="quiet">Changed in</span>
      <select value={turn} onChange={(event) => choose(event.target.value)}>
        <option value="">the whole session</option>
        {turns.map(([id, words]) => <option key={id} value={id}>{reveal(words)}</option>)}
      </select>
    </label>
  )
}

const TURNS = 100

function turnsOf({ state }: LiveSession): [string, string][] {
  const turns: [string, string][] = []
  let last: string | null = null
  for (const entry of state.entries) {
    if (entry.type === 'user' && entry.turnId !== null && entry.turnId !== last) {
      last = entry.turnId
      turns.push([entry.turnId, entryText(entry).slice(0, 60) || 'a prompt without text'])
    }
  }
  return turns.slice(-TURNS).reverse()
}

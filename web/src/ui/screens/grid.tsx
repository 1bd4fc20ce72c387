// Several live sessions side by side. They are chosen when one comes, and stay until one chooses others.

import { useEffect, useReducer, useRef } from 'react'
import { plural } from '../../core/text/format'
import { titleOf } from '../../core/session/listing'
import { busierThan, busiest, keptTiles } from '../../core/session/tiles'
import { reveal } from '../../core/text/safe_text'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Composer } from '../composer/composer'
import { fileDrop } from '../composer/file_drop'
import { Icon } from '../common/icons'
import { ErrorBoundary } from '../common/error_boundary'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { StatusMark } from '../common/status_mark'
import { Transcript } from '../thread/transcript'

// What someone put together by hand is there again when they come back.
let picked: string[] = []

export function Grid() {
  useSignal(store.list)
  const [, drawAgain] = useReducer((count: number) => count + 1, 0)
  const tiles = useRef(picked)
  tiles.current = tiles.current.length ? keptTiles(store.summaries, tiles.current) : busiest(store.summaries)
  const shown = tiles.current.flatMap((id) => store.summaries.get(id) ?? [])
  const others = [...store.summaries.values()].filter(({ id, archived }) => !archived && !tiles.current.includes(id))
  const choose = (ids: string[]) => {
    picked = tiles.current = ids
    drawAgain()
  }
  const swap = (id: string, other: string) => choose(tiles.current.map((tile) => (tile === id ? other : tile)))
  return (
    <main className="gridscreen" aria-label="Grid of sessions">
      {shown.length === 0 && <h1 className="hidden">Grid</h1>}
      {shown.length > 0 && <Head busier={busierThan(store.summaries, tiles.current)} choose={others.length ? () => choose([]) : null} />}
      <div className="grid" data-count={shown.length}>
        {shown.length === 0 && <div className="empty big"><Icon name="grid" /><p>No sessions yet. Up to six appear here side by side.</p></div>}
        {shown.map((session) => (
          <ErrorBoundary key={session.id} name="session" of={session} place="tile">
            <Tile session={session} others={others} swap={(other) => swap(session.id, other)} />
          </ErrorBoundary>
        ))}
      </div>
    </main>
  )
}

/** It is there before it has something to say: nothing moves when others begin to run. */
function Head({ busier, choose }: { busier: number; choose: (() => void) | null }) {
  return (
    <header className="gridhead">
      <h1>Grid</h1>
      <span role="status">{busier > 0 && `${plural(busier, 'busier session')} not shown`}</span>
      <button type="button" disabled={choose === null} onClick={() => choose?.()}>Show the busiest sessions</button>
    </header>
  )
}

interface TileProps { session: Summary; others: Summary[]; swap: (other: string) => void }

function Tile({ session, others, swap }: TileProps) {
  const live = store.open(session.id)
  useEffect(() => void live.load(), [live])
  return (
    <section className={`tile ${session.status}`} aria-label={reveal(titleOf(session))} {...fileDrop(session.id)}>
      <header>
        <a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a>
        <span className="space" />
        <StatusMark session={session} />
        {others.length > 0 && (
          <select value="" aria-label="Show another session here" title="Show another session here" onChange={(event) => swap(event.target.value)}>
            <option value="">Change…</option>
            {others.map((other) => <option key={other.id} value={other.id}>{reveal(titleOf(other))}</option>)}
          </select>
        )}
      </header>
      <Transcript session={live} />
      <Composer session={live} />
    </section>
  )
}

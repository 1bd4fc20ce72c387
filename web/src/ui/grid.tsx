// Several live sessions side by side.

import { useEffect } from 'react'
import { titleOf } from '../core/listing'
import type { Summary } from '../live/api'
import { useSignal } from '../live/signal'
import { store } from '../live/store'
import { Composer } from './composer'
import { Icon } from './icons'
import { Plain } from './plain'
import { paths } from './route'
import { StatusMark } from './status'
import { Transcript } from './transcript'

const MOST = 6

export function Grid() {
  useSignal(store.list)
  const shown = chosen([...store.summaries.values()])
  return (
    <main className="grid" aria-label="Grid of sessions" data-count={shown.length}>
      {shown.length === 0 && <div className="empty big"><Icon name="grid" /><p>No sessions yet. The busiest six are shown here side by side.</p></div>}
      {shown.map((session) => <Tile key={session.id} session={session} />)}
    </main>
  )
}

const WEIGHT: Record<Summary['status'], number> = { waiting: 0, running: 1, interrupted: 2, idle: 2, closed: 3 }

/** What needs someone first, then what runs, then what was used last; in a stable order. */
function chosen(all: Summary[]): Summary[] {
  const ranked = all
    .filter((session) => !session.archived)
    .sort((a, b) => WEIGHT[a.status] - WEIGHT[b.status] || b.updatedAt.localeCompare(a.updatedAt))
  return ranked.slice(0, MOST).sort((a, b) => a.createdAt.localeCompare(b.createdAt))
}

function Tile({ session }: { session: Summary }) {
  const live = store.open(session.id)
  useEffect(() => void live.load(), [live])
  return (
    <section className="tile" aria-label={titleOf(session)}>
      <header>
        <a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a>
        <StatusMark status={session.status} />
      </header>
      <Transcript session={live} />
      <Composer session={live} />
    </section>
  )
}

// Everything that waits for a person, over all sessions.

import { titleOf } from '../../core/listing'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { PendingView } from '../thread/transcript'

export function Inbox() {
  useSignal(store.list)
  const waiting = store.waiting()
  const unclear = store.unclear()
  return (
    <main className="screen" aria-label="Inbox" tabIndex={-1}>
      <h1>Inbox</h1>
      {!store.loaded && <p className="quiet">Loading…</p>}
      {store.loaded && waiting.length === 0 && unclear.length === 0 && (
        <div className="empty big">
          <Icon name="check" />
          <p>Nothing needs your answer. Permission requests and questions from all sessions appear here.</p>
        </div>
      )}
      {waiting.map(({ session, pending }, place) => (
        <section key={`${session.id}:${pending.id}`} className="asked">
          <h2><a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a> <small><Plain text={session.agent} /> in <Plain text={session.cwd} /></small></h2>
          <PendingView session={store.open(session.id)} pending={pending} cwd={session.cwd} place={place} />
        </section>
      ))}
      {unclear.map((session) => <Unclear key={session.id} session={session} />)}
    </main>
  )
}

/** It waits, but what for could not be asked yet. */
function Unclear({ session }: { session: Summary }) {
  const live = store.open(session.id)
  return (
    <section className="asked">
      <h2><a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a></h2>
      {live.error === null
        ? <p className="quiet"><Spinner /> Loading its question…</p>
        : <p className="notice warning"><Icon name="alert" /> <span>It needs you, but could not be loaded: <Plain text={live.error.message} /></span> <button type="button" onClick={() => void live.reload()}>Try again</button></p>}
    </section>
  )
}

// Everything that waits for a person, over all sessions.

import { titleOf } from '../core/listing'
import { useSignal } from '../live/signal'
import { store } from '../live/store'
import { Icon } from './icons'
import { Plain } from './plain'
import { paths } from './route'
import { PendingView } from './transcript'

export function Inbox() {
  useSignal(store.list)
  const waiting = store.waiting()
  return (
    <main className="screen" aria-label="Inbox">
      <h1>Inbox</h1>
      {waiting.length === 0 && (
        <div className="empty big">
          <Icon name="check" />
          <p>Nothing waits for you. When an agent asks for permission or has a question, it shows here, whichever session it is in.</p>
        </div>
      )}
      {waiting.map(({ session, pending }) => (
        <section key={`${session.id}:${pending.id}`} className="asked">
          <h2><a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a> <small><Plain text={session.agent} /> in <Plain text={session.cwd} /></small></h2>
          <PendingView session={store.open(session.id)} pending={pending} cwd={session.cwd} />
        </section>
      ))}
    </main>
  )
}

// The changes of one session on a screen of their own.

import { useEffect } from 'react'
import { titleOf } from '../../core/session/listing'
import { sessions } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { ErrorBoundary } from '../common/error_boundary'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { StatusMark } from '../common/status_mark'
import { ChangesView } from '../review/changes_view'
import { paths } from '../shell/route'
import { MissingSession } from './missing_session'

export function ReviewScreen({ id }: { id: string }) {
  const session = store.open(id)
  const version = useSignal(session.facts)
  useSignal(store.list)
  useEffect(() => void session.load(), [session])
  const changes = useRefetch(id, version, () => sessions.changes(id))
  const summary = store.summaries.get(id)
  if (session.error !== null && !session.loaded) return <MissingSession session={session} />
  return (
    <main className="reviewscreen" aria-label="Review">
      <header className="head">
        <h1><Plain text={summary ? titleOf(summary) : session.state.title ?? 'Session'} /></h1>
        <div className="facts"><span>Review of changes</span>{summary && <StatusMark session={summary} />}</div>
        <div className="headtools"><a className="button" href={paths.session(id)}><Icon name="chevron" className="back" /> Back to session</a></div>
      </header>
      <ErrorBoundary name="review" of={id}>{session.loaded && <ChangesView session={session} all={changes} wide />}</ErrorBoundary>
    </main>
  )
}

// A status is an icon and a word, never a colour alone.

import { isOver } from '../core/state'
import type { Status, Summary } from '../live/api'
import { store } from '../live/store'
import { Icon, Spinner } from './icons'

type Mark = Status | 'failed'

const WORDS: Record<Mark, string> = {
  failed: 'failed',
  idle: 'ready',
  running: 'running',
  waiting: 'needs you',
  interrupted: 'interrupted',
  closed: 'closed',
}

export function StatusMark({ session, quiet = false }: { session: Summary; quiet?: boolean }) {
  const status = markOf(session)
  return (
    <span className={`status ${status}`} title={WORDS[status]}>
      {drawing(status)}
      <span className={quiet ? 'hidden' : ''}>{WORDS[status]}</span>
    </span>
  )
}

/** A last turn that failed is no success, although another can begin. */
function markOf({ id, status, failed }: Summary): Mark {
  if (status !== 'idle') return status
  // What is loaded is told at once, the list a moment later.
  const last = store.known(id)?.state.turns.at(-1)
  const hasFailed = last !== undefined && isOver(last.status) ? last.error !== null : failed
  return hasFailed ? 'failed' : status
}

function drawing(status: Mark) {
  if (status === 'running') return <Spinner />
  if (status === 'waiting') return <Icon name="alert" />
  if (status === 'interrupted' || status === 'failed') return <Icon name="cross" />
  return <Icon name={status === 'closed' ? 'archive' : 'check'} />
}

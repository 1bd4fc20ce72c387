// A status is an icon and a word, never a colour alone.

import type { Status } from '../live/api'
import { Icon, Spinner } from './icons'

const WORDS: Record<Status, string> = {
  idle: 'ready',
  running: 'running',
  waiting: 'needs you',
  interrupted: 'interrupted',
  closed: 'closed',
}

export function StatusMark({ status, quiet = false }: { status: Status; quiet?: boolean }) {
  return (
    <span className={`status ${status}`} title={WORDS[status]}>
      {drawing(status)}
      <span className={quiet ? 'hidden' : ''}>{WORDS[status]}</span>
    </span>
  )
}

function drawing(status: Status) {
  if (status === 'running') return <Spinner />
  if (status === 'waiting') return <Icon name="alert" />
  if (status === 'interrupted') return <Icon name="cross" />
  return <Icon name={status === 'closed' ? 'archive' : 'check'} />
}

// A status is an icon and a word, never a colour alone.

import { isOver, type Ending } from '../../core/session/state'
import type { Status, Summary } from '../../live/api'
import { store } from '../../live/store'
import { Icon, Ring, Spinner, type IconName } from './icons'

type Mark = Exclude<Status, 'idle'> | Exclude<Ending, 'interrupted'> | 'new'

const WORDS: Record<Mark, string> = {
  new: 'ready',
  completed: 'done',
  cancelled: 'stopped',
  failed: 'failed',
  running: 'running',
  waiting: 'needs you',
  parked: 'parked',
  interrupted: 'interrupted',
  closed: 'closed',
}

export function StatusMark({ session, quiet = false }: { session: Summary; quiet?: boolean }) {
  const mark = markOf(session)
  return (
    <span className={`status ${CLASSES[mark] ?? mark}`} title={WORDS[mark]} data-mark={mark}>
      {mark === 'running' ? <Spinner /> : mark === 'new' ? <Ring /> : <Icon name={ICONS[mark]} />}
      <span className={quiet ? 'hidden' : ''}>{WORDS[mark]}</span>
    </span>
  )
}

const ICONS: Record<Exclude<Mark, 'running' | 'new'>, IconName> = {
  waiting: 'alert', completed: 'check', cancelled: 'stop', failed: 'cross', interrupted: 'pause', parked: 'clock', closed: 'archive',
}
/** All of them can be active at once. */
const CLASSES: Partial<Record<Mark, string>> = { new: 'idle', completed: 'idle', cancelled: 'idle' }

/** A session at rest is marked by how its last turn ended: only what was carried through is done. */
function markOf({ id, status, lastEnding }: Summary): Mark {
  if (status !== 'idle') return status
  // A loaded session is up to date at once, the list a moment later.
  const last = store.known(id)?.state.turns.at(-1)
  const ending = last !== undefined && isOver(last.status) ? last.status : lastEnding
  return ending ?? 'new'
}

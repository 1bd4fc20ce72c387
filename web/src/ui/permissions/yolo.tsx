// Shows that the server was started with --yolo: a person should not learn it from a written file.

import { YOLO, flagsOf } from '../../core/permissions/rules'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'

const MEANING = 'The server was started with --yolo: agents’ requests are allowed without asking you. Writes outside the workspace are still refused, and you are still asked about protected files and where a rule says so.'

/** On top of every screen while nothing is asked. */
export function YoloMark() {
  if (!flagsOf(store.given).includes(YOLO)) return null
  return (
    <a className="counter yolo" href="#/policies" title={MEANING}>
      <Icon name="alert" /> <span className="hidden">{MEANING} </span><span>{YOLO}</span>
    </a>
  )
}

/** In the dialog for a new session. */
export function YoloNotice() {
  useSignal(store.list)
  if (!flagsOf(store.given).includes(YOLO)) return null
  return <p className="notice warning"><Icon name="alert" /> <span>{MEANING}</span></p>
}

/** What a new session may do by itself, as far as we know. */
export function PermissionSummary() {
  useSignal(store.list)
  const flags = flagsOf(store.given)
  if (flags.includes(YOLO)) return <>{MEANING}</>
  return (
    <>
      Its requests wait for your answer unless <a href="#/policies">a rule{flags.length > 0 && ` or ${flags.join(' or ')}`}</a> decides them.
      Some agents also write files and run commands themselves, without asking.
    </>
  )
}

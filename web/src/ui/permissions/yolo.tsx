// What the server was started with, where it matters: nobody should learn from a written file that
// nothing is asked.

import { YOLO, flagsOf } from '../../core/rules'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'

const MEANING = 'The server was started with --yolo: what an agent asks for is allowed without asking you. Still refused is writing outside the workspace; you are asked for protected files, and where a rule says so.'

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
      What it asks for waits for your answer, unless <a href="#/policies">a rule{flags.length > 0 && ` or ${flags.join(' or ')}`}</a> decides it.
      Some agents also write and run by themselves and ask nobody.
    </>
  )
}

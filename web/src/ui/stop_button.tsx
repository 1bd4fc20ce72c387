// Stop asks the agent to end its turn. One that does not listen can be killed after a grace. Some
// agents can also stop one thing they do.

import { useEffect, useState } from 'react'
import { plural } from '../core/format'
import { runningTurn } from '../core/state'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { Icon } from './icons'
import { attempt } from './shell'

const GRACE_MS = 5000

export function StopButton({ session }: { session: LiveSession }) {
  const turn = runningTurn(session.state)
  const cancelling = turn?.status === 'cancelling'
  const [impatient, setImpatient] = useState(false)
  useEffect(() => {
    setImpatient(false)
    if (!cancelling) return
    const timer = setTimeout(() => setImpatient(true), GRACE_MS)
    return () => clearTimeout(timer)
  }, [cancelling, turn?.id])
  if (turn === null) return null
  if (impatient) {
    return <button type="button" className="danger" onClick={() => void attempt(sessions.kill(session.id))}><Icon name="cross" /> Kill agent</button>
  }
  const waiting = session.state.queue.length
  const then = waiting === 0 ? '' : `then ${plural(waiting, 'queued prompt')} ${waiting === 1 ? 'runs' : 'run'}`
  return (
    <>
      {then && <small className="then">Stop: {then}</small>}
      <button type="button" disabled={cancelling} onClick={() => stop(session)} title={`Stop (Esc Esc)${then && `; ${then}`}`}>
        <Icon name="stop" /> {cancelling ? 'Stopping…' : 'Stop'}
      </button>
    </>
  )
}

export function stop(session: LiveSession): void {
  if (runningTurn(session.state) !== null) void attempt(sessions.cancel(session.id))
}

interface One { session: LiveSession; what: string; stop: () => Promise<unknown> }

/** For what the agent says can be stopped for itself; the turn goes on. */
export function StopOne({ session, what, stop }: One) {
  const [asked, setAsked] = useState(false)
  useEffect(() => {
    if (!asked) return
    const timer = setTimeout(() => setAsked(false), GRACE_MS)
    return () => clearTimeout(timer)
  }, [asked])
  if (session.past) return null
  const ask = async () => {
    setAsked(true)
    if ((await attempt(stop())) === null) setAsked(false)
  }
  return (
    <button type="button" className="ghost small stopone" disabled={asked} aria-label={`Stop ${what}`} title={`Stop ${what}; the turn goes on`} onClick={() => void ask()}>
      <Icon name="stop" /> {asked ? 'Stopping…' : 'Stop'}
    </button>
  )
}

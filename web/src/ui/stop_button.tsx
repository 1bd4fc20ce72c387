// Stop asks the agent to end its turn. One that does not listen can be killed after a grace.

import { useEffect, useState } from 'react'
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
  return (
    <button type="button" disabled={cancelling} onClick={() => stop(session)} title="Stop (Esc Esc)">
      <Icon name="stop" /> {cancelling ? 'Stopping…' : 'Stop'}
    </button>
  )
}

export function stop(session: LiveSession): void {
  if (runningTurn(session.state) !== null) void attempt(sessions.cancel(session.id))
}

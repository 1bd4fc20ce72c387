// Stop asks the agent to end its turn. One that does not listen can be killed after a grace. Some
// agents can also stop one thing they do.

import { useEffect, useState } from 'react'
import { plural } from '../../core/text/format'
import { runningTurn } from '../../core/session/state'
import { ApiError, sessions, type Sharer } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Icon, Spinner } from '../common/icons'
import { attempt, shell } from '../shell/shell'

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
    return <KillButton session={session} />
  }
  const waiting = session.state.queue.length
  const then = waiting === 0 ? '' : `then ${plural(waiting, 'queued prompt')} ${waiting === 1 ? 'runs' : 'run'}`
  return (
    <>
      {then && <small className="then">Stop: {then}</small>}
      <button type="button" disabled={cancelling} onClick={() => stop(session)} title={`Stop (Esc Esc)${then && `; ${then}`}`}>
        <Icon name="stop" /> <span className="word">{cancelling ? 'Stopping…' : 'Stop'}</span>
      </button>
    </>
  )
}

/** Closes only this session if the agent can; otherwise it first lists the sessions that would fail. */
function KillButton({ session: { id } }: { session: LiveSession }) {
  const [busy, setBusy] = useState(false)
  const kill = async () => {
    setBusy(true)
    try {
      await sessions.kill(id)
    } catch (error) {
      const others = sharers(error)
      if (others === null) shell.fail(error)
      else shell.open({ name: 'kill', session: id, others })
    }
    setBusy(false)
  }
  return (
    <button type="button" className="danger" disabled={busy} onClick={() => void kill()}>
      {busy ? <Spinner /> : <Icon name="cross" />} Kill agent
    </button>
  )
}

function sharers(error: unknown): Sharer[] | null {
  if (!(error instanceof ApiError) || error.code !== 'agent_shared') return null
  return (error.detail as { sessions: Sharer[] }).sessions
}

export function stop(session: LiveSession): void {
  if (runningTurn(session.state) !== null) void attempt(sessions.cancel(session.id))
}

interface One { session: LiveSession; what: string; stop: () => Promise<unknown> }

/** For what the agent says can be stopped alone; the turn continues. */
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
    <button type="button" className="ghost small stopone" disabled={asked} aria-label={`Stop ${what}`} title={`Stop ${what}; the turn continues`} onClick={() => void ask()}>
      <Icon name="stop" /> {asked ? 'Stopping…' : 'Stop'}
    </button>
  )
}

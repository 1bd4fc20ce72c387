// Has another agent continue a session, in a new one with a briefing.

import { isAtWork } from '../../core/session/state'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { reveal } from '../../core/text/safe_text'
import { go, paths } from '../shell/route'
import { attempt } from '../shell/shell'

export function Handoff({ session }: { session: LiveSession }) {
  useSignal(store.list)
  const { state } = session
  const others = store.agents.filter((each) => each.name !== state.agent && each.state !== 'missing')
  if (others.length === 0 || state.turns.length === 0) return null
  const hand = async (agent: string) => {
    const done = await attempt(sessions.handOff(session.id, agent))
    if (done != null) go(paths.session(done.session))
  }
  return (
    <select className="handoff" title="Have another agent continue in a new session" aria-label="Hand off to another agent" value="" disabled={isAtWork(state)} onChange={(event) => void hand(event.currentTarget.value)}>
      <option value="" disabled>Hand off…</option>
      {others.map(({ name }) => <option key={name} value={name}>{reveal(name)}</option>)}
    </select>
  )
}

// A prompt that waits for the end of a limit which the agent reported: send it now, drop it, or let another agent do it.

import { useState } from 'react'
import { clock, moment } from '../../core/text/format'
import { wordsOf } from '../../core/session/queued'
import type { Parking } from '../../core/generated/facts'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { go, paths } from '../shell/route'
import { attempt } from '../shell/shell'

const KINDS: Record<Parking['kind'], string> = {
  rate: 'The agent has reached a rate limit',
  overloaded: 'The model provider is overloaded',
  plan: 'The plan of this agent is used up',
}

export function ParkedCard({ session }: { session: LiveSession }) {
  const [handing, setHanding] = useState(false)
  const { parked, turns } = session.state
  const busy = turns.at(-1)?.status === 'prompting'
  if (parked === null || busy) return null
  const others = store.agents.filter(({ name, state }) => name !== session.state.agent && state !== 'missing')
  const settle = (action: 'continue' | 'wait' | 'drop') => void attempt(sessions.settleParked(session.id, action))
  const hand = async (agent: string) => {
    const done = await attempt(sessions.settleParked(session.id, 'hand_over', agent))
    if (done?.session != null) go(paths.session(done.session))
  }
  return (
    <section className="parked-prompt" aria-label="Parked prompt">
      <p><Icon name="clock" /> <strong>{KINDS[parked.kind]}.</strong> {outlook(parked)}</p>
      <p className="words"><Plain text={wordsOf(parked.content).slice(0, 300)} /></p>
      <div className="buttons">
        <button type="button" className="primary" onClick={() => settle('continue')}>Continue now</button>
        {parked.resumesAt == null && <button type="button" onClick={() => settle('wait')}>Wait for its end</button>}
        <button type="button" onClick={() => settle('drop')}>Drop it</button>
        {others.length > 0 && <button type="button" aria-expanded={handing} onClick={() => setHanding(!handing)}>Hand it over…</button>}
      </div>
      {handing && <div className="buttons" role="group" aria-label="Hand over to">
        {others.map(({ name }) => <button key={name} type="button" onClick={() => void hand(name)}><Plain text={name} /></button>)}
      </div>}
    </section>
  )
}

function outlook({ resumesAt, repeats }: Parking): string {
  if (resumesAt == null) return 'The prompt waits for you.'
  const today = new Date(resumesAt * 1000).toDateString() === new Date().toDateString()
  const at = today ? clock(resumesAt) : moment(resumesAt)
  return repeats === false ? `The agent is asked to continue at ${at}.` : `The prompt is sent again at ${at}.`
}

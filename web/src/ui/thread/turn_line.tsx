// Below the thread: what the turn does and for how long, or how the last one ended and what can be done.

import { endingOf } from '../../core/session/endings'
import { entryText, isOver, runningTurn, type Entry, type SessionState } from '../../core/session/state'
import type { LiveSession } from '../../live/session'
import { store } from '../../live/store'
import { Icon, Spinner } from '../common/icons'
import { delivered } from '../composer/composer'
import { giveBack } from '../composer/drafts'
import { attemptSignedIn } from '../shell/shell'
import { Elapsed } from '../start/starting'
import { BEGINNING, beginSession } from '../start/wish'

const WORDS = { prompting: 'Sent', streaming: 'Working', waiting: 'Waiting for you', cancelling: 'Stopping' }

export function TurnLine({ session }: { session: LiveSession }) {
  const { state } = session
  const turn = state.turns.at(-1)
  if (runningTurn(state) === null && state.activity !== 'idle') {
    return <p className="turnline"><Spinner /> The agent is working in the background.</p>
  }
  if (turn === undefined) return null
  if (!isOver(turn.status)) {
    const begun = promptOf(state)?.at ?? 0
    return <p className="turnline">{turn.status === 'waiting' ? <Icon name="alert" /> : <Spinner />} {WORDS[turn.status]}… {begun > 0 && !session.past && <Elapsed since={begun * 1000} />}</p>
  }
  const text = endingOf(turn) ?? (turn.status === 'interrupted' ? 'Interrupted: the process of this session ended during the turn.' : null)
  const cut = turn.status === 'failed' || turn.status === 'interrupted' || text !== null
  return (
    <>
      {text !== null && <p className="turnline"><Icon name={turn.status === 'interrupted' ? 'pause' : 'stop'} /> {text}</p>}
      {cut && !session.past && !session.gone && state.parked === null && state.queue.length === 0 && <Onward session={session} />}
    </>
  )
}

/** The prompt of the last turn. */
function promptOf({ entries, turns }: SessionState): Extract<Entry, { type: 'user' }> | null {
  const id = turns.at(-1)?.id
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]
    if (entry?.type === 'user' && entry.turnId === id && entry.steer === null) return entry
    if (entry?.turnId != null && entry.turnId !== id) return null
  }
  return null
}

/** What a person can do about a turn that did not complete. */
function Onward({ session }: { session: LiveSession }) {
  const prompt = promptOf(session.state)
  const words = prompt === null ? '' : entryText(prompt)
  const whole = prompt !== null && prompt.pieces.every((piece) => typeof piece === 'string')
  const { agent, cwd } = session.state
  const send = (text: string) => {
    void attemptSignedIn(agent || (store.summaries.get(session.id)?.agent ?? ''), () => delivered(session, { text }, 'queue')).then((accepted) => {
      if (accepted === null) giveBack(session.id, text)
    })
  }
  const elsewhere = () => {
    giveBack(BEGINNING, words)
    beginSession(cwd)
  }
  return (
    <article className="onward" aria-label="What next">
      {whole && words.trim() !== '' && <button type="button" disabled={session.sending > 0} onClick={() => send(words)}><Icon name="undo" /> Retry</button>}
      <button type="button" disabled={session.sending > 0} onClick={() => send('Continue.')}><Icon name="play" /> Continue</button>
      {words.trim() !== '' && <button type="button" className="ghost" onClick={elsewhere}><Icon name="plus" /> Start again in a new session</button>}
    </article>
  )
}

// Where one lands with nothing chosen: what needs a person, what runs and what was done lately; with
// no session at all, what this is and the one thing to do next.

import { plural } from '../../core/text/format'
import { shownSessions } from '../../core/session/listing'
import { currentPlan, type Pending } from '../../core/session/state'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { shell } from '../shell/shell'
import { SessionGroup } from '../sidebar/session_group'

export function Home() {
  useSignal(store.list)
  if (!store.loaded) return <main className="screen" aria-label="Start" />
  return store.summaries.size > 0 ? <Overview /> : <Welcome />
}

function Welcome() {
  return (
    <main className="screen home" aria-label="Start">
      <img src="./icon.svg" alt="" width="48" height="48" />
      <h1>Start your first session</h1>
      <p className="lead">Pick an agent and a folder. The built-in demo agent needs no key: it plans, edits a file, asks for permission and runs a command, so you can see how everything looks.</p>
      <Beginnings />
      <p className="quiet"><kbd>n</kbd> new session · <kbd>?</kbd> all shortcuts</p>
    </main>
  )
}

function Beginnings() {
  return (
    <div className="options">
      <button type="button" className="primary" onClick={() => shell.open({ name: 'new' })}><Icon name="plus" /> New session</button>
      <button type="button" onClick={() => shell.open({ name: 'import' })}>Import</button>
      <a className="button" href="#/agents"><Icon name="bot" /> Agents</a>
    </div>
  )
}

const LATELY = 10

/** What needs you, what is running, and what is recent. */
function Overview() {
  const all = shownSessions(store.summaries.values(), 'all', '')
  // The oldest question of each session comes last here, and so it is the one that is kept.
  const asked = new Map(store.waiting().reverse().map(({ session, pending }) => [session.id, pending]))
  const waiting = all.filter((session) => session.status === 'waiting')
  const running = all.filter((session) => session.status === 'running')
  const rest = all.filter((session) => !waiting.includes(session) && !running.includes(session)).slice(0, LATELY)
  return (
    <main className="screen overview" aria-label="Start">
      <header><h1>{waiting.length ? `${plural(waiting.length, 'session')} ${waiting.length === 1 ? 'needs' : 'need'} you` : running.length ? 'Sessions are running' : 'Nothing is running'}</h1><Beginnings /></header>
      <SessionGroup name="Needs you" sessions={waiting} note={(session) => wordsOf(asked.get(session.id))} more={<a href="#/inbox">Open the inbox</a>} />
      <SessionGroup name="Running" sessions={running} note={doing} more={<a href="#/grid">Side by side</a>} />
      <SessionGroup name="Recent" sessions={rest} />
    </main>
  )
}

function wordsOf(pending: Pending | undefined): string {
  if (pending === undefined) return ''
  return pending.kind === 'permission' ? pending.title || pending.operation : pending.message
}

/** The step of the plan that it is at, where it has one. */
function doing(session: Summary): string {
  const known = store.known(session.id)
  const plan = known && currentPlan(known.state)
  return plan?.steps.find((step) => step.status === 'in_progress')?.content ?? ''
}

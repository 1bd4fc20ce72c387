// Where one lands with nothing chosen: a field to begin in, then what needs a person, what runs and what
// was done lately; with no session at all, what this is.

import { plural } from '../../core/text/format'
import { shownSessions } from '../../core/session/listing'
import { currentPlan, type Pending } from '../../core/session/state'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon, type IconName } from '../common/icons'
import { shell } from '../shell/shell'
import { SessionGroup } from '../sidebar/session_group'
import { StartComposer } from '../start/start_composer'
import { StartList } from '../start/starting'

export function Home() {
  useSignal(store.list)
  if (!store.loaded) return <main className="screen" aria-label="Start" />
  return store.summaries.size > 0 ? <Overview /> : <Welcome />
}

const LESSONS: [IconName, string, string][] = [
  ['send', 'Start by typing', 'Choose an agent and a folder below the prompt. The demo agent needs no key: it plans, edits a file, asks for permission and runs a command.'],
  ['inbox', 'Decide in the inbox', 'What agents of all sessions ask waits there, oldest first. Allow once, or make a rule.'],
  ['read', 'Review what changed', 'Each session keeps its changes: look at them hunk by hunk, comment, or put them back.'],
]

/** Nothing was done yet: what there is to learn stands where the sessions will be. */
function Welcome() {
  return (
    <main className="screen overview welcome" aria-label="Start">
      <h1>Start your first session</h1>
      <StartComposer />
      <StartList />
      <ul className="lessons">
        {LESSONS.map(([icon, title, text]) => <li key={title}><Icon name={icon} /><div><strong>{title}</strong><p>{text}</p></div></li>)}
      </ul>
      <p className="quiet">Sessions that an agent already has can be <button type="button" className="linklike" onClick={() => shell.open({ name: 'import' })}>imported</button>. More agents: <a href="#/agents">Agents</a>.<span className="forkeys"> Press <kbd>?</kbd> for keyboard shortcuts.</span></p>
    </main>
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
      <h1>{waiting.length ? `${plural(waiting.length, 'session')} ${waiting.length === 1 ? 'needs' : 'need'} you` : running.length ? 'Sessions are running' : 'What is next?'}</h1>
      <StartComposer />
      <StartList />
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

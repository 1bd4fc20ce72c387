// Signing in to an agent: the ways it offers, and for those that need a terminal exactly what to run.

import { useEffect, useState } from 'react'
import { shellWords } from '../../core/text/safe_text'
import { agents as api, type SignIns, type SignInMethod } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { AgentQuestions } from '../permissions/agent_questions'
import { copy } from '../common/clipboard'
import { Modal } from '../common/modal'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { attempt, shell } from '../shell/shell'

/** In a dialog: an agent said that it wants a sign-in first. */
export function SignIn({ agent, settle }: { agent: string; settle: (signedIn: boolean) => void }) {
  const done = () => {
    settle(true)
    shell.set({ dialog: null })
  }
  return (
    <Modal title="Sign in">
      <p>The agent <strong><Plain text={agent} /></strong> requires you to sign in. What you began continues afterwards.</p>
      <SignInMethods agent={agent} done={done} />
    </Modal>
  )
}

const LOOK_MS = 3_000

/** Above the first prompt: an agent that says it is not signed in would refuse it. */
export function SignedOutLine({ session }: { session: LiveSession }) {
  const { agent, turns } = session.state
  const begins = session.loaded && turns.length === 0
  useSignal(store.list)
  // It says so a moment after its start, or after a sign-in somewhere else.
  useEffect(() => {
    if (!begins) return
    void store.askAgents()
    const timer = setInterval(() => void store.askAgents(), LOOK_MS)
    return () => clearInterval(timer)
  }, [begins])
  if (!begins || store.agents.find((each) => each.name === agent)?.signedIn !== false) return null
  return (
    <p className="notice warning" role="status">
      <Icon name="shield" /> <span><Plain text={agent} /> is not signed in.</span>
      <button type="button" onClick={() => shell.open({ name: 'signin', agent, settle: () => undefined })}>Sign in</button>
    </p>
  )
}

export function SignInMethods({ agent, done }: { agent: string; done?: () => void }) {
  const [ways, setWays] = useState<SignIns | null>(null)
  const [failure, setFailure] = useState('')
  const [busy, setBusy] = useState('')
  useEffect(() => {
    api.signIn(agent).then(setWays, (error: Error) => setFailure(error.message))
  }, [agent])
  const signIn = async (way: SignInMethod) => {
    setBusy(way.id)
    setFailure('')
    const told = await api.signIn(agent, way.id).catch((error: Error) => error)
    setBusy('')
    if (told instanceof Error) return setFailure(told.message)
    if (!told.signedIn) return setFailure('The agent says that you are not signed in.')
    shell.say('Signed in.')
    void store.askAgents()
    done?.()
  }
  const signOut = async () => {
    setBusy('logout')
    if ((await attempt(api.signOut(agent))) !== null) shell.say('Signed out.')
    setBusy('')
  }
  if (ways === null) return failure ? <p className="notice error"><Plain text={failure} lines /></p> : <p className="quiet"><Spinner /> Asking the agent…</p>
  return (
    <div className="signin">
      {ways.methods.length === 0 && <p className="quiet">This agent lists no sign-in methods: it needs none, or takes a key from its settings or environment.</p>}
      {ways.methods.length > 0 && (
        <ul className="ways" aria-label="Sign-in methods">
          {ways.methods.map((way) => <Way key={way.id} way={way} busy={busy} signIn={() => void signIn(way)} />)}
        </ul>
      )}
      {failure && <p className="notice error" role="alert"><Icon name="alert" /> <Plain text={failure} lines /></p>}
      {busy !== '' && <AgentQuestions agent={agent} />}
      <OwnWay agent={agent} />
      {ways.canLogout === true && store.agents.find(({ name }) => name === agent)?.signedIn !== false && <button type="button" disabled={busy !== ''} onClick={() => void signOut()}>{busy === 'logout' && <Spinner />} Sign out</button>}
    </div>
  )
}

/** What our table of agents knows and no agent reports: its variable, or its own command. */
function OwnWay({ agent }: { agent: string }) {
  const known = store.agents.find(({ name }) => name === agent)?.signIn
  return known ? <p className="quiet">The agent’s own sign-in: <Plain text={known.replaceAll('`', '')} /></p> : null
}

function Way({ way, busy, signIn }: { way: SignInMethod; busy: string; signIn: () => void }) {
  return (
    <li>
      <strong><Plain text={way.name} /></strong>
      {way.description && <p className="quiet"><Plain text={way.description} lines /></p>}
      {way.kind === 'terminal' ? <InTerminal way={way} /> : (
        <button type="button" disabled={busy !== ''} onClick={signIn}>{busy === way.id ? <Spinner /> : <Icon name="shield" />} Sign in: <Plain text={way.name} /></button>
      )}
    </li>
  )
}

/** Nobody can sign in here for a person at a terminal: so it says what to run. */
function InTerminal({ way }: { way: SignInMethod }) {
  const command = way.command?.length ? shellWords(way.command) : ''
  if (!command) return <p className="quiet">Run the agent’s own sign-in in a terminal.</p>
  return (
    <>
      <p>Run this in a terminal{way.env?.length ? <>, with {way.env.map((name) => <code key={name}><Plain text={name} /> </code>)} set</> : ''}:</p>
      <div className="torun">
        <pre className="command" tabIndex={0} aria-label="The command to run"><Plain text={command} lines /></pre>
        <button type="button" className="ghost" aria-label="Copy the command" title="Copy the command" onClick={() => copy(command, 'Command')}><Icon name="copy" /></button>
      </div>
    </>
  )
}

// Rename, fork, delete, and end the agent of several.

import { useState, type FormEvent } from 'react'
import { plural } from '../../core/text/format'
import { titleOf } from '../../core/session/listing'
import { sessions, type Sharer, type Summary } from '../../live/api'
import { store } from '../../live/store'
import { AgentQuestions } from '../permissions/agent_questions'
import { Modal } from '../common/modal'
import { giveBack } from '../composer/drafts'
import { Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { currentRoute, go, paths } from '../shell/route'
import { attempt, attemptSignedIn, shell } from '../shell/shell'

export function Rename({ session }: { session: Summary }) {
  const [title, setTitle] = useState(titleOf(session))
  const save = async (event: FormEvent) => {
    event.preventDefault()
    if ((await attempt(sessions.change(session.id, { title: title.trim() }))) === null) return
    store.add({ ...session, title: title.trim() })
    shell.set({ dialog: null })
  }
  return (
    <Modal title="Rename session">
      <form className="stack" onSubmit={(event) => void save(event)}>
        <label className="field"><span className="label">Title</span><input value={title} maxLength={500} required data-first="" onChange={(e) => setTitle(e.target.value)} onFocus={(e) => e.target.select()} /></label>
        <div className="options ending"><button type="button" onClick={() => shell.set({ dialog: null })}>Cancel</button><button type="submit" className="primary">Rename</button></div>
      </form>
    </Modal>
  )
}

const FIRST_PROMPTS = ['Write a pull request description for this work.', 'Review these changes with fresh eyes.']

export function Fork({ session }: { session: Summary }) {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const fork = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    const made = await attemptSignedIn(session.agent, () => sessions.fork(session.id))
    setBusy(false)
    if (made === null) return
    store.add(made)
    shell.set({ dialog: null })
    go(paths.session(made.id))
    if (!text.trim()) return
    const begun = await attemptSignedIn(session.agent, () => sessions.prompt(made.id, { text: text.trim() }))
    if (begun === null) giveBack(made.id, text.trim())
  }
  return (
    <Modal title="Fork session">
      <form className="stack" onSubmit={(event) => void fork(event)}>
        <p>Starts a new session that remembers this one. The original does not change.</p>
        <label className="field"><span className="label">First prompt <span className="quiet">(optional)</span></span><textarea rows={3} value={text} data-first="" onChange={(e) => setText(e.target.value)} /></label>
        <div className="suggestions">{FIRST_PROMPTS.map((prompt) => <button key={prompt} type="button" className="ghost" onClick={() => setText(prompt)}>{prompt}</button>)}</div>
        <div className="options ending"><button type="button" onClick={() => shell.set({ dialog: null })}>Cancel</button><button type="submit" className="primary" disabled={busy}>{busy && <Spinner />} Fork</button></div>
      </form>
      {busy && <AgentQuestions agent={session.agent} />}
    </Modal>
  )
}

export function Delete({ session }: { session: Summary }) {
  const [busy, setBusy] = useState(false)
  const remove = async () => {
    setBusy(true)
    const done = await attempt(sessions.remove(session.id))
    setBusy(false)
    if (done === null) return
    shell.set({ dialog: null })
    const route = currentRoute()
    if (route.screen === 'session' && route.id === session.id) go('#/')
    store.forget(session.id)
    shell.say('Session deleted.')
  }
  return (
    <Modal title="Delete session">
      <p>Delete “<Plain text={titleOf(session)} />” here and, if possible, in its agent? This cannot be undone; archiving only hides the session.</p>
      <div className="options">
        <button type="button" className="danger" disabled={busy} onClick={() => void remove()}>{busy && <Spinner />} Delete</button>
        <button type="button" data-first="" onClick={() => shell.set({ dialog: null })}>Keep</button>
      </div>
    </Modal>
  )
}

const LOSSES: Record<string, string> = { waiting: 'waiting for your answer', running: 'running' }

export function Kill({ session, others }: { session: string; others: Sharer[] }) {
  const [busy, setBusy] = useState(false)
  const kill = async () => {
    setBusy(true)
    const done = await attempt(sessions.kill(session, true))
    setBusy(false)
    if (done !== null) shell.set({ dialog: null })
  }
  const count = plural(others.length, 'other session')
  return (
    <Modal title="Kill the agent?">
      <p>The agent cannot close this session alone: its process also serves {count}. All of their turns will fail; each session continues with its next prompt.</p>
      <ul className="sharers">
        {others.map((each) => (
          <li key={each.id}>
            <a href={paths.session(each.id)} onClick={() => shell.set({ dialog: null })}><Plain text={titleOf(each)} /></a>
            <span className="quiet">{LOSSES[each.status] ?? 'cannot be continued'}</span>
          </li>
        ))}
      </ul>
      <div className="options">
        <button type="button" className="danger" disabled={busy} onClick={() => void kill()}>{busy && <Spinner />} Kill it for {others.length === 1 ? 'both' : `all ${others.length + 1}`}</button>
        <button type="button" data-first="" onClick={() => shell.set({ dialog: null })}>Keep waiting</button>
      </div>
    </Modal>
  )
}

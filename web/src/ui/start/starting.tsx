// A session that is being started: what was asked, how long the agent takes, and what to do if it does not
// start. The words stay until a session has them.

import { useEffect, useState } from 'react'
import { baseName, duration } from '../../core/text/format'
import { agents, type DoctorReport } from '../../live/api'
import { useSignal } from '../../live/signal'
import { starts, wordsIn, type Start } from '../../live/starts'
import { store } from '../../live/store'
import { AgentMark } from '../common/agent_mark'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { giveBack } from '../composer/drafts'
import { delivered } from '../composer/composer'
import { AgentQuestions } from '../permissions/agent_questions'
import { Doctor } from '../screens/agents'
import { SignInMethods } from '../screens/sign_in'
import { currentRoute, go, paths, replace } from '../shell/route'
import { attempt, attemptSignedIn, shell } from '../shell/shell'
import { BEGINNING, changeWish } from './wish'

/** What becomes of a session that has started: it gets its words, and is shown to whom still waits for it. */
export function listenToStarts(): void {
  starts.ready = (start, session) => {
    store.add(session)
    const route = currentRoute()
    if (route.screen === 'start' && route.key === start.key) {
      shell.set({ writing: session.id })
      replace(paths.session(session.id))
    } else shell.say('Your session has started.')
    const { text, files } = wordsIn(start.prompt)
    if (text === '' && files === 0) return
    const send = () => delivered(store.open(session.id), start.prompt, 'queue')
    void attemptSignedIn(session.agent, send).then((accepted) => { if (accepted === null) giveBack(session.id, text) })
  }
}

/** The words go back into the field they came from. */
export function cancelStart(key: string): void {
  const start = starts.drop(key)
  if (start !== null) {
    changeWish({ agent: start.wish.agent, ...(start.wish.cwd !== undefined && { folder: start.wish.cwd }) })
    giveBack(BEGINNING, wordsIn(start.prompt).text)
    shell.set({ writing: BEGINNING })
  }
  go('#/')
}

export function Starting({ id }: { id: string }) {
  useSignal(starts.changed)
  useSignal(store.list)
  const start = starts.find(id)
  if (start === null) {
    return (
      <main className="screen home" aria-label="Starting">
        <h1>Nothing is being started here</h1>
        <div className="options"><a className="button" href="#/">Start a session</a></div>
      </main>
    )
  }
  const { text, files } = wordsIn(start.prompt)
  return (
    <main className="screen starting" aria-label="Starting">
      <h1><AgentMark name={start.wish.agent} /> <span>{start.stage === 'starting' ? 'Starting' : 'Not started'}: <Plain text={start.wish.agent} /></span></h1>
      {start.wish.cwd && <p className="quiet"><Icon name="folder" /> <Plain text={start.wish.cwd} /></p>}
      <div className="said user">
        <div className="who">You</div>
        <p className="typed"><Plain text={text} lines /></p>
        {files > 0 && <p className="quiet"><Icon name="clip" /> {files === 1 ? '1 file' : `${files} files`}</p>}
      </div>
      {start.stage === 'starting' ? <UnderWay start={start} /> : <NotStarted key={start.at} start={start} />}
    </main>
  )
}

function UnderWay({ start }: { start: Start }) {
  return (
    <>
      <div className="startline" role="status">
        <Spinner /> <span>The agent is starting. <Elapsed since={start.at} /></span>
        <button type="button" onClick={() => cancelStart(start.key)}>Cancel <kbd>Esc</kbd></button>
      </div>
      <AgentQuestions agent={start.wish.agent} />
    </>
  )
}

export function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const seconds = (now - since) / 1000
  return seconds < 1 ? null : <span className="quiet" aria-hidden="true">{duration(seconds)}</span>
}

function NotStarted({ start }: { start: Start }) {
  const { agent } = start.wish
  const [report, setReport] = useState<DoctorReport | null>(null)
  const [busy, setBusy] = useState(false)
  const check = async () => {
    setBusy(true)
    setReport(await attempt(agents.doctor(agent)))
    setBusy(false)
  }
  const signIn = start.failure?.code === 'auth_required'
  return (
    <>
      <div className={`notice ${signIn ? 'warning' : 'error'}`} role="alert">
        <Icon name={signIn ? 'shield' : 'alert'} />
        <div className="told">
          {signIn
            ? <strong>The agent requires you to sign in.</strong>
            : start.failure === null
              ? <><strong>The page was loaded again while the agent started.</strong> A session without your words may be in the list.</>
              : <Plain text={start.failure.message} lines />}
        </div>
      </div>
      {signIn && <SignInMethods agent={agent} done={() => starts.again(start.key)} />}
      <div className="options">
        <button type="button" className="primary" onClick={() => starts.again(start.key)}>Try again</button>
        <button type="button" onClick={() => cancelStart(start.key)}>Change it</button>
        {!signIn && <button type="button" disabled={busy} onClick={() => void check()}>{busy ? <Spinner /> : <Icon name="check" />} Check the agent</button>}
      </div>
      {report && <Doctor report={report} />}
    </>
  )
}

/** On the first screen: those one has turned away from. */
export function StartList() {
  useSignal(starts.changed)
  const list = starts.list()
  if (list.length === 0) return null
  return (
    <section className="shelf" aria-label="Starting">
      <h2>Starting</h2>
      <ul>
        {list.map((start) => (
          <li key={start.key}>
            <a href={paths.start(start.key)}>
              {start.stage === 'starting' ? <Spinner /> : <Icon name="alert" />}
              <span className="title"><span className="words"><Plain text={wordsIn(start.prompt).text.split('\n')[0] ?? ''} /></span>{start.stage !== 'starting' && <small>Not started</small>}</span>
              <small>{start.wish.cwd && <><Plain text={baseName(start.wish.cwd)} /> · </>}<Plain text={start.wish.agent} /></small>
              <small className="when" />
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

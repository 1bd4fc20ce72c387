// The agents that can be started: what state they are in, a check-up, and signing in.

import { useEffect, useState } from 'react'
import { agents as api, type AgentInfo, type DoctorReport } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { AgentMark } from '../common/agent_mark'
import { Icon, Ring, Spinner, type IconName } from '../common/icons'
import { beginSession, changeWish } from '../start/wish'
import { InstallAgent } from './install_agent'
import { Plain } from '../common/plain_text'
import { attempt } from '../shell/shell'
import { Providers } from './providers'
import { SignInMethods } from './sign_in'

export function Agents() {
  useSignal(store.list)
  const [failed, setFailed] = useState(false)
  const ask = () => void store.askAgents().then((told) => setFailed(told === null))
  // One may have been installed since.
  useEffect(ask, [])
  return (
    <main className="screen" aria-label="Agents">
      <h1>Agents</h1>
      <p className="lead">Any program that speaks the Agent Client Protocol. Add one in <code>settings.json</code>, or install one of these.</p>
      {store.agents.length === 0 && (failed
        ? <p className="notice warning"><Icon name="alert" /> <span>Could not load the agents.</span> <button type="button" onClick={ask}>Try again</button></p>
        : <p className="quiet">Loading…</p>)}
      <ul className="agents">{store.agents.map((agent) => <Agent key={agent.name} agent={agent} />)}</ul>
    </main>
  )
}

function Agent({ agent }: { agent: AgentInfo }) {
  const [busy, setBusy] = useState('')
  const [report, setReport] = useState<DoctorReport | null>(null)
  const [open, setOpen] = useState<'signin' | 'providers' | null>(null)
  const toggle = (what: 'signin' | 'providers') => setOpen(open === what ? null : what)
  const missing = agent.state === 'missing'
  const run = async <T,>(what: string, work: Promise<T>, then: (result: T) => void) => {
    setBusy(what)
    const result = await attempt(work)
    setBusy('')
    if (result !== null) then(result)
  }
  return (
    <li className="card">
      <header>
        <AgentMark name={agent.name} /> <strong><Plain text={agent.title || agent.name} /></strong>
        {agent.title !== '' && agent.title !== agent.name && <code><Plain text={agent.name} /></code>}
        {agent.isDefault && <span className="tag">default</span>}
        <span className={`status ${missing ? 'pending' : 'completed'}`}>{missing ? <Ring /> : <Icon name="check" />} {missing ? 'not installed' : agent.state}</span>
      </header>
      {agent.signedIn !== null && <p className={agent.signedIn ? 'quiet' : 'notice warning'}><Icon name="shield" /> <span>{agent.signedIn ? 'Signed in' : 'Not signed in'}{agent.account && <> (<Plain text={agent.account} />)</>}</span></p>}
      {agent.path && <p className="quiet"><code><Plain text={agent.path} /></code></p>}
      {missing && <InstallAgent agent={agent} />}
      {missing && agent.variable && <p className="quiet">Needs <code><Plain text={agent.variable} /></code> or its own sign-in.</p>}
      {/^https?:/.test(agent.homepage) && <p className="quiet"><a href={agent.homepage} target="_blank" rel="noopener noreferrer"><Plain text={agent.homepage} /></a></p>}
      {!missing && (
        <div className="options">
          <button type="button" onClick={() => { changeWish({ agent: agent.name }); beginSession() }}><Icon name="plus" /> New session</button>
          <button type="button" disabled={busy !== ''} onClick={() => void run('doctor', api.doctor(agent.name), setReport)}>{busy === 'doctor' ? <Spinner /> : <Icon name="check" />} Check</button>
          <button type="button" aria-expanded={open === 'signin'} onClick={() => toggle('signin')}><Icon name="shield" /> Sign in</button>
          <button type="button" aria-expanded={open === 'providers'} onClick={() => toggle('providers')}><Icon name="link" /> Model providers</button>
        </div>
      )}
      {open === 'signin' && <SignInMethods agent={agent.name} />}
      {open === 'providers' && <Providers agent={agent.name} />}
      {report && <Doctor report={report} />}
    </li>
  )
}

const GRADES: Record<string, [IconName, string]> = {
  pass: ['check', 'completed'], warn: ['alert', 'waiting'], fail: ['cross', 'failed'], skip: ['dots', 'pending'],
}

export function Doctor({ report }: { report: DoctorReport }) {
  return (
    <ul className="findings" aria-label="Check results">
      {report.findings.map((finding) => {
        const [icon, tone] = GRADES[finding.grade] ?? ['info', 'pending']
        return (
          <li key={finding.check}>
            <span className={`status ${tone}`}><Icon name={icon} /> {finding.grade}</span>
            <strong><Plain text={finding.check} /></strong> <span><Plain text={finding.text} lines /></span>
          </li>
        )
      })}
    </ul>
  )
}

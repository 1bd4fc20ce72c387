// What is known of a session: its folder, ids, usage and cost over time, sub-agents.

import { useEffect, useState } from 'react'
import type { UsageChanged } from '../core/events'
import { count, moment, money } from '../core/format'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { useSignal } from '../live/signal'
import { store } from '../live/store'
import { token } from '../live/token'
import { Icon } from './icons'
import { Meter } from './meter'
import { Plain } from './plain'
import { Decisions } from './decisions'
import { paths } from './route'
import { shell } from './shell'
import { Raw } from './tool_call'

export function InfoView({ session }: { session: LiveSession }) {
  useSignal(session.facts)
  const { state } = session
  const summary = store.summaries.get(session.id)
  const usage = state.turns.at(-1)?.usage
  return (
    <div className="info">
      {state.usage && <Meter usage={state.usage} />}
      <UsageChart session={session} />
      <dl>
        <Fact name="Agent" value={state.agent || (summary?.agent ?? '')} />
        <Fact name="Folder" value={state.cwd} />
        {state.additional_directories.map((folder) => <Fact key={folder} name="Also" value={folder} />)}
        <Fact name="Session" value={session.id} />
        <Fact name="Agent’s id" value={state.session_id} />
        <Fact name="Continuity" value={state.continuity} />
        <Fact name="Begun" value={summary ? moment(summary.createdAt) : ''} />
        <Fact name="Last change" value={summary ? moment(summary.updatedAt) : ''} />
        <Fact name="Events" value={String(state.last_seq)} />
        <Fact name="Owner" value={summary?.owner ? `${summary.owner.label} (${summary.owner.pid})` : ''} />
        {usage && <Fact name="Last turn" value={`${count(usage.input)} in, ${count(usage.output)} out`} />}
      </dl>
      <Subagents session={session} />
      <Decisions session={session} />
      <div className="options">
        <a className="button" href={paths.replay(session.id)}><Icon name="play" /> Replay</a>
        <button type="button" onClick={() => void download(session.id)}><Icon name="down" /> Export JSONL</button>
      </div>
    </div>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  if (!value) return null
  return <><dt>{name}</dt><dd><Plain text={value} /></dd></>
}

function Subagents({ session }: { session: LiveSession }) {
  const children = [...session.state.subagents.values()]
  if (children.length === 0) return null
  return (
    <section>
      <h3>Sub-agents</h3>
      {children.map((child) => (
        <details key={child.session_id} className="raw">
          <summary><Icon name="bot" /> <Plain text={child.title ?? child.session_id} /> {child.description && <small><Plain text={child.description} /></small>}</summary>
          <Raw label="State" value={child.state} />
        </details>
      ))}
    </section>
  )
}

/** How full the context was over time, and what it has cost. */
function UsageChart({ session }: { session: LiveSession }) {
  const [points, setPoints] = useState<UsageChanged[]>([])
  const last = session.state.usage
  useEffect(() => {
    sessions.events(session.id, Math.max(0, session.state.last_seq - 5000), 5000).then(
      ({ events }) => setPoints(events.filter((event): event is UsageChanged => event.type === 'usage')),
      () => undefined,
    )
  }, [session, last])
  if (points.length < 2) return null
  const [from, to] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1]
  const x = (at: number) => ((at - from) / Math.max(1e-9, to - from)) * 100
  const line = points.map((p) => `${x(p.at ?? 0).toFixed(2)},${(36 - (p.size ? p.used / p.size : 0) * 34).toFixed(2)}`).join(' ')
  const cost = points.at(-1)?.cost
  return (
    <figure className="chart">
      <svg viewBox="0 0 100 38" preserveAspectRatio="none" role="img" aria-label="Context used over time">
        <line x1="0" x2="100" y1="8.8" y2="8.8" className="limit" />
        <polyline points={line} />
      </svg>
      <figcaption>Context over time; the line marks 80 %.{cost && ` Cost so far: ${money(cost.amount, cost.currency)}.`}</figcaption>
    </figure>
  )
}

async function download(id: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token()}` }
  const response = await fetch(`/api/sessions/${encodeURIComponent(id)}/export`, { headers })
  if (!response.ok) return shell.say(`The export failed (${response.status}).`, true)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = `${id}.jsonl`
  link.click()
  URL.revokeObjectURL(link.href)
}

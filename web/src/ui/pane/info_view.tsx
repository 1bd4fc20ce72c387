// What is known of a session: its folder, ids, usage and cost over time, what its agent can do, and
// what was decided.

import { fenceWords } from '../../core/fence'
import { count, moment } from '../../core/text/format'
import { sessions, type Detail, type Offered } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { useRefetch } from '../common/refetch'
import { Icon } from '../common/icons'
import { LimitTable } from './limit_table'
import { ContextMeter } from './context_meter'
import { Plain } from '../common/plain_text'
import { ProgramList } from './program_list'
import { DecisionList } from '../permissions/decision_list'
import { download } from '../common/download'
import { paths } from '../shell/route'
import { Raw } from '../thread/tool_call'
import { UsageChart } from './usage_chart'

export function InfoView({ session }: { session: LiveSession }) {
  useSignal(session.facts)
  const { state } = session
  const summary = store.summaries.get(session.id)
  const usage = state.turns.at(-1)?.usage
  const detail = useRefetch(session.id, state.turns.length, () => sessions.state(session.id, 0)).value
  return (
    <div className="info">
      {state.usage && <ContextMeter usage={state.usage} />}
      <UsageChart session={session} />
      <dl>
        <Fact name="Agent" value={state.agent || (summary?.agent ?? '')} />
        <Fact name="Folder" value={state.cwd} />
        {state.additionalDirectories.map((folder) => <Fact key={folder} name="Additional folder" value={folder} />)}
        <Fact name="Fence" value={fenceWords(state.fence, state.network)} />
        <Fact name="Not offered" value={withheld(detail?.offer)} />
        <Fact name={detail?.systemPrompt?.mode === 'override' ? 'System prompt (override)' : 'System prompt'} value={detail?.systemPrompt?.text ?? ''} />
        <Fact name="Session" value={session.id} />
        <Fact name="Agent’s session id" value={state.sessionId} />
        <Fact name="Continuity" value={state.continuity} />
        <Fact name="Started" value={summary ? moment(summary.createdAt) : ''} />
        <Fact name="Last change" value={summary ? moment(summary.updatedAt) : ''} />
        <Fact name="Events" value={String(state.lastSeq)} />
        <Fact name="Host" value={summary?.host ? `${summary.host.name}${summary.host.here ? ', this server' : summary.host.alive ? '' : ', offline'}` : ''} />
        <Fact name="Run by" value={summary?.owner ? `${summary.owner.label}, process ${summary.owner.pid}` : 'not running; starts with the next prompt'} />
        {/* Some count the turn, others the session so far, and none says which. */}
        <Fact name="Tokens" value={usage ? `${count(usage.input)} in, ${count(usage.output)} out, as counted by the agent` : 'unknown'} />
        {!state.usage && <Fact name="Context" value="unknown" />}
      </dl>
      <LimitTable session={session} />
      <Capabilities session={session} agent={detail?.runningAgent} />
      <DecisionList session={session} />
      <ProgramList session={session} />
      <div className="options">
        <a className="button" href={paths.replay(session.id)}><Icon name="play" /> Replay</a>
        <button type="button" onClick={() => void download(session.id)}><Icon name="down" /> Export JSONL</button>
      </div>
    </div>
  )
}

/** What was switched off when the session began. */
function withheld(offer?: Offered): string {
  return [offer?.files === false && 'files', offer?.terminals === false && 'terminals'].filter(Boolean).join(', ')
}

/** What the agent that runs it says it can do. */
function Capabilities({ session, agent }: { session: LiveSession; agent: Detail['runningAgent'] }) {
  if (agent == null) return null
  const { raw, ...named } = agent.capabilities
  const words = Object.keys(named).filter((name) => named[name] === true).map((name) => name.replaceAll('_', ' '))
  return (
    <section>
      <h3><Plain text={[agent.name || session.state.agent, agent.version].filter(Boolean).join(' ')} />, protocol {agent.protocolVersion}</h3>
      <ul className="capabilities" aria-label="Capabilities">{words.map((word) => <li key={word} className="tag"><Plain text={word} /></li>)}</ul>
      <Raw label="As reported by the agent" value={raw} />
    </section>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  if (!value) return null
  return <><dt>{name}</dt><dd><Plain text={value} /></dd></>
}

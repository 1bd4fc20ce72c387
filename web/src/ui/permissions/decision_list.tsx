// What was decided in a session, by whom or by which rule.

import type { AccessDecided, PermissionRequested, PermissionSettled } from '../../core/generated/events'
import type { Decision } from '../../core/generated/facts'
import { clock, within, table } from '../../core/text/format'
import { reasonOf } from '../../core/permissions/rules'
import { commandLine, reveal } from '../../core/text/safe_text'
import { policies } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSessionHistory, type Past } from '../pane/session_history'
import { Icon, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { attempt, shell } from '../shell/shell'
import { Raw } from '../thread/tool_call'

const SHOWN = 100

export interface Decided { seq: number; at: number; what: string; decision: Decision; host?: string | null }

export function DecisionList({ session }: { session: LiveSession }) {
  const decided = decisionsIn(useSessionHistory(session), session.state.cwd)
  if (decided.length === 0) return null
  return (
    <section>
      <h3>Decisions</h3>
      <ul className="decisions">{decided.slice(-SHOWN).reverse().map((each) => <DecisionRow key={each.seq} decided={each}>{each.host != null && <AllowHost host={each.host} cwd={session.state.cwd} />}</DecisionRow>)}</ul>
    </section>
  )
}

/** A host that the fence refused: a rule lets it through from now on. */
function AllowHost({ host, cwd }: { host: string; cwd: string }) {
  const allow = async () => {
    const rule = await attempt(policies.add({ effect: 'allow', operation: 'fetch', host, project: cwd }))
    if (rule !== null) shell.say(`Agents in this folder may reach ${reveal(host)} from now on.`)
  }
  return <button type="button" className="ghost" onClick={() => void allow()}>Allow <Plain text={host} /> from now on</button>
}

const ICONS = table<IconName>({ allow: 'check', cancelled: 'stop', answered: 'info' })

export function DecisionRow({ decided, children }: { decided: Decided; children?: React.ReactNode }) {
  const { decision, what, at } = decided
  return (
    <li>
      <span className={`effect ${decision.effect}`}><Icon name={ICONS[decision.effect] ?? 'cross'} /> <Plain text={decision.effect} /></span>
      <span><code><Plain text={what} /></code> <small><Plain text={reasonOf(decision)} /> · <time>{clock(at)}</time></small>{children}<Raw label="Rule" value={decision.rule} /></span>
    </li>
  )
}

export function decisionsIn(events: Past[], cwd: string): Decided[] {
  const asked = new Map<string, PermissionRequested>()
  const decided: Decided[] = []
  for (const event of events) {
    if (event.type === 'permission_requested') asked.set(event.requestId, event)
    if (event.type !== 'access' && event.type !== 'permission_settled') continue
    decided.push({ seq: event.seq ?? 0, at: event.at ?? 0, what: subject(event, asked, cwd), decision: event.decision, host: event.type === 'access' ? event.host ?? null : null })
  }
  return decided
}

function subject(event: AccessDecided | PermissionSettled, asked: Map<string, PermissionRequested>, cwd: string): string {
  const about = event.type === 'access' ? event : asked.get(event.requestId)
  if (about === undefined) return 'an earlier question'
  const what = about.argv != null ? commandLine(about.argv) : (about.paths ?? []).map((path) => within(path, cwd)).join(', ')
  return `${about.operation ?? 'other'} ${what || (about.title ?? '')}`
}

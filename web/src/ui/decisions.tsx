// Why was this allowed? What was decided in a session, by whom or by which rule.

import { useEffect, useState } from 'react'
import type { AccessDecided, Event, PermissionRequested, PermissionSettled } from '../core/events'
import type { Decision } from '../core/facts'
import { clock, within } from '../core/format'
import { shellWords } from '../core/visible'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { Icon } from './icons'
import { Plain } from './plain'
import { Raw } from './tool_call'

const EVENTS = 5000
const SHOWN = 100

interface Decided { seq: number; at: number; what: string; decision: Decision }

export function Decisions({ session }: { session: LiveSession }) {
  const [decided, setDecided] = useState<Decided[]>([])
  const { cwd, last_seq: last } = session.state
  useEffect(() => {
    const timer = setTimeout(() => {
      sessions.events(session.id, Math.max(0, last - EVENTS), EVENTS).then(({ events }) => setDecided(found(events, cwd)), () => undefined)
    }, 300)
    return () => clearTimeout(timer)
  }, [session, last, cwd])
  if (decided.length === 0) return null
  return (
    <section>
      <h3>Decisions</h3>
      <ul className="decisions">
        {decided.slice(-SHOWN).reverse().map((each) => (
          <li key={each.seq}>
            <span className={`effect ${each.decision.effect}`}><Icon name={each.decision.effect === 'allow' ? 'check' : 'cross'} /> <Plain text={each.decision.effect} /></span>
            <span><code><Plain text={each.what} /></code> <small><Plain text={each.decision.reason} /> <time>{clock(each.at)}</time></small><Raw label="Rule" value={each.decision.rule} /></span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function found(events: Event[], cwd: string): Decided[] {
  const asked = new Map<string, PermissionRequested>()
  const decided: Decided[] = []
  for (const event of events) {
    if (event.type === 'permission_requested') asked.set(event.request_id, event)
    if (event.type !== 'access' && event.type !== 'permission_settled') continue
    decided.push({ seq: event.seq ?? 0, at: event.at ?? 0, what: subject(event, asked, cwd), decision: event.decision })
  }
  return decided
}

function subject(event: AccessDecided | PermissionSettled, asked: Map<string, PermissionRequested>, cwd: string): string {
  const about = event.type === 'access' ? event : asked.get(event.request_id)
  if (about === undefined) return 'an earlier question'
  const what = about.argv != null ? shellWords(about.argv) : (about.paths ?? []).map((path) => within(path, cwd)).join(', ')
  return `${about.operation ?? 'other'} ${what}`
}

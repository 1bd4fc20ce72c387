// The rules: those that "always" answers created, those the server was started with, and those kept with
// projects; what each allows or forbids, and for whom. And what was decided lately, with the reason.

import { useEffect, useState } from 'react'
import type { Event } from '../../core/generated/events'
import { moment, plural, sinceWords } from '../../core/text/format'
import { expiryWords, folded, madeBy, scopeWords, sourceOf, subjectOf, type Rule } from '../../core/permissions/rules'
import { reveal } from '../../core/text/safe_text'
import { titleOf } from '../../core/session/listing'
import { policies, type Policy, type Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { useRefetch } from '../common/refetch'
import { DecisionRow, decisionsIn, type Decided } from '../permissions/decision_list'
import { historyOf } from '../pane/session_history'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { attempt } from '../shell/shell'
import { RuleForms } from './policy_forms'
import { ProjectFiles, outOfForce, useProjects } from './project_rules'

export function Policies({ folder }: { folder: string }) {
  const version = useDecisions()
  const { value, failure, again } = useRefetch('rules', version, policies.list)
  const rules = value?.policies ?? null
  const given = folded(value?.given ?? [])
  const projects = useProjects(rules ?? [], folder)
  const revoke = async (rule: Policy) => {
    if ((await attempt(policies.revoke(rule.id))) === null) return
    again()
    projects.again()
  }
  return (
    <main className="screen" aria-label="Policies">
      <h1>Policies</h1>
      <p className="lead">Without a rule, agents may read inside the workspace, and you are asked about everything else. Deny overrides ask, and ask overrides allow. Rules come from your “always” answers, from the form below, from files kept with projects, and from how the server was started. Without a fence, no rule can stop what an agent does without asking.</p>
      {rules === null && <p className="quiet">{failure ? <Plain text={failure} /> : 'Looking…'}</p>}
      {rules?.length === 0 && given.length === 0 && <div className="empty big"><Icon name="shield" /><p>No rules yet. When you answer a permission request with “always”, or add a rule below, it appears here and can be revoked.</p></div>}
      {rules !== null && rules.length + given.length > 0 && (
        <div className="tablewrap" tabIndex={0} role="region" aria-label="Rules">
          <table>
            <thead><tr><th scope="col">Effect</th><th scope="col">What</th><th scope="col">For</th><th scope="col">From</th><th scope="col"><span className="hidden">Actions</span></th></tr></thead>
            <tbody>
              {given.map((rule, at) => <GivenRow key={at} rule={rule} />)}
              {rules.map((rule) => (
                <tr key={rule.id}>
                  <td><span className={`effect ${rule.rule.effect}`}>{rule.rule.effect}</span></td>
                  <td><What rule={rule.rule} /></td>
                  <td><Scope rule={rule.rule} /><Absent rule={rule} file={outOfForce(rule.rule, projects.lists)} /></td>
                  <td title={`made ${moment(rule.createdAt)}${rule.usedAt ? `, used ${moment(rule.usedAt)}` : ''}`}>{madeBy(rule.rule)} <small className="beneath">{rule.usedAt ? `last used ${sinceWords(rule.usedAt)}` : 'never used'}</small></td>
                  <td><button type="button" onClick={() => void revoke(rule)}>Revoke</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <ProjectFiles projects={projects} wanted={folder} changed={again} />
      <RuleForms added={again} />
      <Why version={version} />
    </main>
  )
}

const SESSIONS = 8
const MORE_SESSIONS = 32
const SHOWN = 40

interface Settled extends Decided { session: Summary }

/** Grows whenever something was decided somewhere. */
function useDecisions(): number {
  const [version, setVersion] = useState(0)
  useEffect(() => {
    const listener = (_: Summary, event: Event) => {
      if (event.type === 'access' || event.type === 'permission_settled') setVersion((now) => now + 1)
    }
    store.happened.push(listener)
    return () => void store.happened.splice(store.happened.indexOf(listener), 1)
  }, [])
  return version
}

/** The last decisions in the sessions used last, with their reasons. */
function Why({ version }: { version: number }) {
  useSignal(store.list)
  const [sessions, setSessions] = useState(SESSIONS)
  const all = [...store.summaries.values()].sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
  const recent = all.slice(0, sessions)
  const { value } = useRefetch(`decisions of ${recent.length}`, version, () => Promise.all(recent.map(decidedIn)))
  const decided = (value ?? []).flatMap((each) => each ?? []).sort((a, b) => b.at - a.at).slice(0, SHOWN)
  const unknown = value?.filter((each) => each === null).length ?? 0
  const where = all.length > recent.length ? `the last ${recent.length} sessions` : 'your sessions'
  return (
    <section className="why" aria-label="Recent decisions">
      <h2>Recent decisions</h2>
      {value === null && <p className="quiet">Loading…</p>}
      {value !== null && decided.length === 0 && <p className="quiet">No decisions in {where}. Each one appears here with its reason and its rule.</p>}
      {unknown > 0 && <p className="notice warning"><Icon name="alert" /> <span>Could not load the decisions of {plural(unknown, 'session')}.</span></p>}
      <ul className="decisions">
        {decided.map((each) => (
          <DecisionRow key={`${each.session.id}:${each.seq}`} decided={each}> <small><a href={paths.session(each.session.id)}><Plain text={titleOf(each.session)} /></a></small></DecisionRow>
        ))}
      </ul>
      {all.length > recent.length && <p><button type="button" onClick={() => setSessions(sessions + MORE_SESSIONS)}>Show more sessions</button></p>}
      <p className="quiet">The last {SHOWN} decisions in {where}. A session’s Info tab lists all of its decisions.</p>
    </section>
  )
}

/** None are an answer; null is that there was none. */
async function decidedIn(session: Summary): Promise<Settled[] | null> {
  const past = await historyOf(session.id).catch(() => null)
  return past && decisionsIn(past, session.cwd).map((each) => ({ ...each, session }))
}

/** A rule that the server was started with: no button revokes it, so the row says how. */
function GivenRow({ rule }: { rule: Rule }) {
  const source = sourceOf(rule)
  return (
    <tr>
      <td><span className={`effect ${rule.effect}`}>{rule.effect}</span></td>
      <td><What rule={rule} /></td>
      <td><Scope rule={rule} /></td>
      <td title={reveal(rule.source ?? '')}><Plain text={source.words} /> <small className="beneath">{source.why}</small></td>
      <td />
    </tr>
  )
}

function What({ rule }: { rule: Rule }) {
  const { operation, names } = subjectOf(rule)
  if (rule.anywhere && rule.operation === undefined) return <>everything except writes outside the workspace and protected files</>
  return <>{operation} {names.map((name) => <code key={name}>{reveal(name)}</code>)}{rule.anywhere && ' anywhere'}</>
}

/** Why it does not count here. */
function Absent({ rule: { here, host }, file }: { rule: Policy; file: string | null }) {
  const why = here ? file : host === null ? 'not in force: its host is not known' : `only on the host ${host}`
  return why === null ? null : <small className="beneath"><Plain text={why} /></small>
}

function Scope({ rule }: { rule: Rule }) {
  const expiry = expiryWords(rule)
  return <><Plain text={scopeWords(rule)} />{expiry && <small> {expiry}</small>}</>
}

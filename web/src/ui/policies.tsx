// The rules that "always" answers left behind: what each allows or forbids, for whom, and since when.

import { useEffect, useState } from 'react'
import { ago, moment } from '../core/format'
import { reveal, shellWords } from '../core/visible'
import { policies, type Policy, type Rule } from '../live/api'
import { Icon } from './icons'
import { Plain } from './plain'
import { attempt, shell } from './shell'

export function Policies() {
  const [rules, setRules] = useState<Policy[] | null>(null)
  useEffect(() => {
    policies.list().then((told) => setRules(told.policies), (error: unknown) => shell.fail(error))
  }, [])
  const revoke = async (rule: Policy) => {
    if ((await attempt(policies.revoke(rule.id))) !== null) setRules((now) => now?.filter((r) => r.id !== rule.id) ?? null)
  }
  return (
    <main className="screen" aria-label="Policies">
      <h1>Policies</h1>
      <p className="lead">Without a rule, an agent may read inside its workspace and must ask for everything else. Deny beats ask, ask beats allow. Rules come from your “always” answers.</p>
      {rules?.length === 0 && <div className="empty big"><Icon name="shield" /><p>No rules yet. Answer a permission with “always” and the rule it writes is listed here, with a button to take it back.</p></div>}
      {rules !== null && rules.length > 0 && (
        <div className="tablewrap" tabIndex={0} role="region" aria-label="Rules">
          <table>
            <thead><tr><th scope="col">Effect</th><th scope="col">What</th><th scope="col">For</th><th scope="col">Last used</th><th scope="col"><span className="hidden">Actions</span></th></tr></thead>
            <tbody>
              {rules.map((rule) => (
                <tr key={rule.id}>
                  <td><span className={`effect ${rule.rule.effect}`}>{rule.rule.effect}</span></td>
                  <td>{what(rule.rule)}</td>
                  <td><Scope rule={rule.rule} /></td>
                  <td title={rule.usedAt ? moment(rule.usedAt) : `made ${moment(rule.createdAt)}`}>{rule.usedAt ? ago(rule.usedAt) : 'never'}</td>
                  <td><button type="button" onClick={() => void revoke(rule)}>Revoke</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p className="quiet">Why was something allowed? The Info pane of a session lists every decision with its reason and rule; <code>dragoman policy explain</code> says which rule would decide on any request.</p>
    </main>
  )
}

function what(rule: Rule) {
  const command = rule.argv ? shellWords(rule.argv) : rule.argv_prefix ? `${shellWords(rule.argv_prefix)} …` : null
  const parts = [command, rule.path, rule.host, rule.tool].filter((part): part is string => part != null)
  return <>{rule.operation ?? 'anything'} {parts.map((part) => <code key={part}>{reveal(part)}</code>)}{rule.anywhere && ' anywhere'}</>
}

function Scope({ rule }: { rule: Rule }) {
  const parts = [rule.agent && `agent ${rule.agent}`, rule.project && `in ${rule.project}`, rule.session && `session ${rule.session}`].filter(Boolean)
  return (
    <>
      <Plain text={parts.length ? parts.join(', ') : rule.scope === 'user' || rule.scope === undefined ? 'everything' : rule.scope} />
      {rule.expires_at != null && <small> until {moment(rule.expires_at)}</small>}
    </>
  )
}

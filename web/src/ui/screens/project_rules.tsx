// Rules that are kept with a project, in its `.dragoman/policy.toml`. They count once a person has read and
// trusted them: what is trusted is the content that was shown here, and nothing that came after.

import { useEffect, useRef, useState } from 'react'
import { baseName } from '../../core/text/format'
import type { Rule } from '../../core/permissions/rules'
import { reveal } from '../../core/text/safe_text'
import { ApiError, policies, type Policy, type ProjectRule, type ProjectRuleList } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { paths } from '../shell/route'
import { shell } from '../shell/shell'

const FILE = '.dragoman/policy.toml'
const FOLDERS = 12

export interface Projects { lists: ProjectRuleList[]; again: () => void }

/** Of the folders used last, those that have such a file, or whose file was trusted. */
export function useProjects(rules: readonly Policy[], wanted: string): Projects {
  useSignal(store.list)
  const used = [...store.summaries.values()].filter(({ cwd, host }) => cwd && host?.here !== false).sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
  const trusted = rules.flatMap(({ rule }) => (isOfFile(rule) && rule.project ? [rule.project] : []))
  const recent = [...new Set(used.map(({ cwd }) => cwd))].slice(0, FOLDERS)
  const folders = [...new Set([...(wanted ? [wanted] : []), ...recent, ...trusted])].sort()
  const { value, again } = useRefetch(JSON.stringify(folders), 0, () => Promise.all(folders.map((folder) => policies.ofProject(folder).catch(() => null))))
  return { lists: (value ?? []).filter((each) => each !== null).filter(({ standing }) => standing !== 'none'), again }
}

function isOfFile({ source = '' }: Rule): boolean {
  return source.endsWith(`/${FILE}`)
}

/** Why a stored rule does not count now. */
export function outOfForce(rule: Rule, lists: readonly ProjectRuleList[]): string | null {
  const list = isOfFile(rule) && rule.effect === 'allow' ? lists.find(({ folder }) => folder === rule.project) : undefined
  return list === undefined || list.standing === 'trusted' ? null : `not in force: the file ${WHAT[list.standing]}`
}

const WHAT = { none: 'is gone', gone: 'is gone', broken: 'cannot be read', changed: 'has changed', untrusted: 'is not trusted', trusted: '' }

export function ProjectFiles({ projects: { lists, again }, wanted, changed }: { projects: Projects; wanted: string; changed: () => void }) {
  if (lists.length === 0) return null
  const done = () => { again(); changed() }
  return (
    <section className="projectfiles" aria-label="Rules kept with projects">
      <h2>Rules kept with projects</h2>
      {lists.map((list) => <ProjectFile key={`${list.folder} ${list.digest}`} list={list} wanted={list.folder === wanted} changed={done} />)}
    </section>
  )
}

const STANDINGS = {
  none: { mark: '', words: '' },
  untrusted: { mark: 'not trusted', words: 'None of these rules applies. Anyone who can write in this folder could have written them: read each one.' },
  changed: { mark: 'changed', words: 'The file has changed since you trusted it. It allows nothing until you trust it again; what it denied or asked still applies.' },
  gone: { mark: 'gone', words: 'The file is gone. What it denied or asked applies until you stop trusting it.' },
  broken: { mark: 'broken', words: 'The file cannot be used, so it allows nothing. What you trusted before still denies and asks.' },
  trusted: { mark: 'trusted', words: 'These rules apply. If the file changes, it allows nothing until you trust it again.' },
}

function ProjectFile({ list, wanted, changed }: { list: ProjectRuleList; wanted: boolean; changed: () => void }) {
  const { folder, path, standing, digest, problem, rules } = list
  const [busy, setBusy] = useState(false)
  // What is there instead is shown when it is asked for, never under a finger that meant what it replaces.
  const [stale, setStale] = useState('')
  const card = useRef<HTMLElement>(null)
  useEffect(() => {
    if (wanted) card.current?.focus()
  }, [wanted])
  const run = async (work: Promise<unknown>, said: string) => {
    setBusy(true)
    try {
      await work
      shell.say(said)
      changed()
    } catch (error) {
      if (error instanceof ApiError && error.code === 'conflict') setStale(error.message)
      else shell.fail(error)
    }
    setBusy(false)
  }
  const known = rules.some(({ trusted }) => trusted)
  const differs = rules.some(({ written, trusted }) => !written || !trusted)
  const { mark, words } = STANDINGS[standing]
  return (
    <article ref={card} className={`card projectfile ${standing}`} tabIndex={-1} aria-label={`Rules kept with ${baseName(folder)}`}>
      <header>
        <Icon name="file" /> <strong><Plain text={baseName(folder)} /></strong> <span className="tag">{mark}</span>
      </header>
      <code className="filepath"><Plain text={path} /></code>
      {problem !== null && <p className="notice warning"><Icon name="alert" /> <span><Plain text={problem} /></span></p>}
      <p className="quiet">{rules.length === 0 && standing === 'trusted' ? 'There are no rules in it.' : (problem === null || known) && words}</p>
      <ul className="filerules">
        {rules.map((rule, at) => (
          <li key={at} className={rule.effect}>
            <Plain text={rule.sentence} /> <Change rule={rule} list={list} />
          </li>
        ))}
      </ul>
      {stale && <p className="notice warning" role="alert"><Icon name="alert" /> <span><Plain text={stale} /></span></p>}
      <div className="options">
        {stale && <button type="button" onClick={changed}>Show it as it is now</button>}
        {!stale && digest !== null && (standing === 'changed' || differs) && <button type="button" className="primary" disabled={busy} onClick={() => void run(policies.trust(folder, digest), 'These rules apply from now on, until the file changes.')}>Trust these rules</button>}
        {known && <button type="button" disabled={busy} onClick={() => void run(policies.distrust(folder), 'None of these rules applies now.')}>Stop trusting</button>}
      </div>
    </article>
  )
}

/** What is different since the file was trusted, if it ever was. */
function Change({ rule: { effect, written, trusted }, list: { standing } }: { rule: ProjectRule; list: ProjectRuleList }) {
  const words = standing === 'untrusted' || (written && trusted) ? '' : written ? 'new'
    : effect === 'allow' ? 'no longer allowed' : standing === 'changed' ? 'no longer in the file, still applies' : 'still applies'
  return words && <span className="tag">{words}</span>
}

const NOTES: Partial<Record<ProjectRuleList['standing'], string>> = { untrusted: 'are not trusted', changed: 'have changed', broken: 'cannot be read' }

/** In a session: that its project has rules that do not count, and where to read them. */
export function UntrustedLine({ session }: { session: LiveSession }) {
  useSignal(session.facts)
  useSignal(store.list)
  const summary = store.summaries.get(session.id)
  const folder = summary && summary.host?.here !== false ? summary.cwd : ''
  const { value } = useRefetch(folder, session.state.turns.length, async () => (folder ? policies.ofProject(folder).catch(() => null) : null))
  const words = value && NOTES[value.standing]
  if (!words) return null
  return <p className="rulesline quiet" title={reveal(value.path)}><Icon name="shield" /> <span>The project’s rules {words}. <a href={paths.policies(folder)}>Look at them</a></span></p>
}

// A request in words: what the rules would decide about it, and a rule made for it.

import { useState, type FormEvent } from 'react'
import { inOrder, reasonOf } from '../../core/permissions/rules'
import { hosts as listHosts, policies, type NewRule, type TrialBody, type Verdict } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { attempt, shell } from '../shell/shell'

type Kind = 'execute' | 'write' | 'read' | 'fetch' | 'mcp'

const KINDS: Record<Kind, { name: string; label: string; hint: string; key: 'command' | 'path' | 'host' | 'tool' }> = {
  execute: { name: 'Run a command', label: 'Command', hint: 'git status', key: 'command' },
  write: { name: 'Write a file', label: 'Path', hint: 'src/app.py', key: 'path' },
  read: { name: 'Read a file', label: 'Path', hint: '/etc/hosts', key: 'path' },
  fetch: { name: 'Fetch from a host', label: 'Host or address', hint: 'https://example.com', key: 'host' },
  mcp: { name: 'Call an MCP tool', label: 'Tool', hint: 'search', key: 'tool' },
}
const DAY = 86400

interface Wish { kind: Kind; text: string; folder: string }

/** Where the server began, or the project used last. */
function useFolder(): string {
  useSignal(store.list)
  const known = useRefetch('hosts', 0, listHosts).value?.hosts
  const [last] = [...store.summaries.values()].filter(({ cwd }) => cwd).sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
  return last?.cwd ?? known?.find(({ here }) => here)?.cwd ?? ''
}

export function RuleForms({ added }: { added: () => void }) {
  const usual = useFolder()
  const [kind, setKind] = useState<Kind>('execute')
  const [text, setText] = useState('')
  const [typed, setFolder] = useState<string>()
  const [verdict, setVerdict] = useState<Verdict | null>(null)
  const { label, hint, key } = KINDS[kind]
  const folder = typed ?? usual
  const wish: Wish = { kind, text: text.trim(), folder: folder.trim() }
  const trial = (): TrialBody => ({ operation: kind, [key]: wish.text, ...(wish.folder && { cwd: wish.folder }) })
  const ask = async () => setVerdict(await attempt(policies.explain(trial())))
  const change = (set: () => void) => { set(); setVerdict(null) }
  const tried = (event: FormEvent) => { event.preventDefault(); void ask() }
  return (
    <section className="tryrules" aria-label="Try the rules">
      <h2>Try the rules, or add one</h2>
      <form onSubmit={tried} className="request">
        <label className="field"><span className="label">Request</span>
          <select value={kind} onChange={(e) => change(() => setKind(e.target.value as Kind))}>
            {(Object.keys(KINDS) as Kind[]).map((each) => <option key={each} value={each}>{KINDS[each].name}</option>)}
          </select>
        </label>
        <label className="field grows"><span className="label">{label}</span>
          <input value={text} onChange={(e) => change(() => setText(e.target.value))} placeholder={hint} spellCheck={false} autoCapitalize="off" autoComplete="off" required />
        </label>
        <label className="field grows"><span className="label">Project</span>
          <input value={folder} onChange={(e) => change(() => setFolder(e.target.value))} spellCheck={false} autoCapitalize="off" />
        </label>
        <button type="submit" disabled={!wish.text}>Try it</button>
      </form>
      <div role="status">{verdict && <Decided verdict={verdict} />}</div>
      {wish.text && <AddRule key={kind} wish={wish} added={() => { added(); void ask() }} />}
    </section>
  )
}

const EFFECTS = { allow: 'Allowed', ask: 'You would be asked', deny: 'Refused' }

function Decided({ verdict }: { verdict: Verdict }) {
  const others = inOrder(verdict.rules)
  return (
    <div className={`verdict ${verdict.effect}`}>
      <p><span className={`effect ${verdict.effect}`}>{EFFECTS[verdict.effect]}</span>: <Plain text={reasonOf(verdict)} /></p>
      {others.length > 0 && (
        <details>
          <summary>Rules considered: {others.length}</summary>
          <ul>{others.map((each, at) => <li key={at}><Plain text={each.sentence} /> <small>{each.matches ? 'matches' : <Plain text={each.mismatch ?? ''} />}</small></li>)}</ul>
        </details>
      )}
    </div>
  )
}

/** The request as a rule. What it names is a pattern, except for a command. */
function AddRule({ wish: { kind, text, folder }, added }: { wish: Wish; added: () => void }) {
  const [effect, setEffect] = useState<NewRule['effect']>('allow')
  const [prefix, setPrefix] = useState(false)
  const [everywhere, setEverywhere] = useState(false)
  const [days, setDays] = useState(0)
  const [warnings, setWarnings] = useState<string[]>([])
  const add = async (event: FormEvent) => {
    event.preventDefault()
    const expires = days ? { expiresAt: Math.round(Date.now() / 1000) + days * DAY } : {}
    const value = kind === 'fetch' ? hostOf(text) : text
    const rule: NewRule = { effect, operation: kind, [KINDS[kind].key]: value, ...(kind === 'execute' && { prefix }), ...(!everywhere && { project: folder }), ...expires }
    const told = await attempt(policies.add(rule))
    if (told === null) return
    setWarnings(told.warnings)
    shell.say(`${told.existed ? 'Stored already' : 'Added'}: ${told.sentence}`)
    added()
  }
  return (
    <form onSubmit={(event) => void add(event)} className="request" aria-label="Add a rule">
      <label className="field"><span className="label">From now on</span>
        <select value={effect} onChange={(e) => setEffect(e.target.value as NewRule['effect'])}>
          <option value="allow">Allow it</option><option value="ask">Always ask</option><option value="deny">Refuse it</option>
        </select>
      </label>
      {kind === 'execute' && (
        <label className="field"><span className="label">Command</span>
          <select value={prefix ? 'prefix' : 'exact'} onChange={(e) => setPrefix(e.target.value === 'prefix')}>
            <option value="exact">Exactly these words</option><option value="prefix">Any that begin with them</option>
          </select>
        </label>
      )}
      <label className="field"><span className="label">Where</span>
        <select value={everywhere ? 'all' : 'project'} onChange={(e) => setEverywhere(e.target.value === 'all')}>
          <option value="project">In this project</option><option value="all">In all projects</option>
        </select>
      </label>
      <label className="field"><span className="label">Until</span>
        <select value={days} onChange={(e) => setDays(Number(e.target.value))}>
          <option value={0}>Revoked</option><option value={1}>Tomorrow</option><option value={7}>In 7 days</option><option value={30}>In 30 days</option>
        </select>
      </label>
      <button type="submit" className="primary" disabled={!everywhere && !folder}>Add rule</button>
      {(kind === 'write' || kind === 'read') && <small className="across"><code>src/**</code> is a folder and everything below it.</small>}
      {warnings.map((each) => <p key={each} className="notice warning across"><Icon name="alert" /> <span><Plain text={each} /></span></p>)}
    </form>
  )
}

/** A rule names hosts; people paste addresses. */
function hostOf(text: string): string {
  return URL.canParse(text) ? new URL(text).hostname || text : text
}

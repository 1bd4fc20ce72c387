// A new session: which agent, in which folder, in which mode, with which model, what it is offered and told.

import { useState, type FormEvent } from 'react'
import { ApiError, agents as api, hosts as listHosts, sessions, type AgentSessionShape, type FenceMode, type Offered, type SystemPrompt } from '../../live/api'
import { ago } from '../../core/text/format'
import { reveal } from '../../core/text/safe_text'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { AgentQuestions } from '../permissions/agent_questions'
import { useRefetch } from '../common/refetch'
import { Modal } from '../common/modal'
import { Spinner } from '../common/icons'
import { rememberedOptions, type Choice } from './remembered_options'
import { Plain } from '../common/plain_text'
import { LimitFields, NO_LIMITS, wishedLimits, type TypedLimits } from './limit_fields'
import { recentFolders } from '../start/recent_folders'
import { giveBack, takeDraft } from '../composer/drafts'
import { delivered } from '../composer/composer'
import { BEGINNING } from '../start/wish'
import { currentFolder } from '../shell/actions'
import { go, paths } from '../shell/route'
import { attemptSignedIn, shell } from '../shell/shell'
import { YoloNotice } from '../permissions/yolo'

// What was chosen for a session that could not begin, because of a sign-in for example.
let unfinished: { agent: string; folder: string; mode: string; model: string; host: string; offer: Offered; fence: FenceMode; system: SystemPrompt; limits: TypedLimits } | null = null

interface Props { cwd: string | undefined; agent: string | undefined; prompted: boolean | undefined }

export function NewSession({ cwd, agent: asked, prompted = false }: Props) {
  const [agent, setAgent] = useAgent(asked ?? unfinished?.agent)
  const [typed, setFolder] = useState(cwd ?? unfinished?.folder)
  const [wrong, setWrong] = useState('')
  const [mode, setMode] = useState(unfinished?.mode ?? '')
  const [model, setModel] = useState(unfinished?.model ?? '')
  const [busy, setBusy] = useState(false)
  const [host, setHost] = useState(unfinished?.host ?? '')
  const hosts = useRefetch('hosts', 0, listHosts).value?.hosts.filter((each) => each.alive) ?? []
  const project = currentFolder()
  const own = hosts.length > 1 ? hosts.find((each) => each.name === host)?.cwd : hosts[0]?.cwd
  const folder = typed ?? project ?? own ?? ''
  const [offered, setOffered] = useState<Offered>(unfinished?.offer ?? EVERYTHING)
  const [fence, setFence] = useState<FenceMode>(unfinished?.fence ?? 'off')
  const [system, setSystem] = useState<SystemPrompt>(unfinished?.system ?? { text: '', mode: 'append' })
  const [limits, setLimits] = useState<TypedLimits>(unfinished?.limits ?? NO_LIMITS)
  const told = system.text.trim() !== ''
  const offer = rememberedOptions(agent)
  const choose = (name: string) => {
    setAgent(name)
    setMode('')
    setModel('')
  }
  const create = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setWrong('')
    const config = model.trim() ? { config: { [offer?.modelOption ?? 'model']: model.trim() } } : {}
    const wish = { agent, ...(host && { host }), ...(folder.trim() && { cwd: folder.trim() }), ...(mode.trim() && { mode: mode.trim() }), ...config, ...(told && { systemPrompt: system }), ...wishedLimits(limits), offer: offered, ...(fence !== 'off' && { fence }) }
    const session = await attemptSignedIn(agent, () => sessions.create(wish).catch((error: unknown) => {
      if (!isAbout(error, folder.trim())) throw error
      setWrong(error.message)
      return null
    }))
    setBusy(false)
    unfinished = session === null ? { agent, folder, mode, model, host, offer: offered, fence, system, limits } : null
    if (session === null) return
    shell.set({ dialog: null, drawer: false, writing: session.id })
    store.add(session)
    go(paths.session(session.id))
    const words = prompted ? takeDraft(BEGINNING) : ''
    if (words.trim() === '') return
    const accepted = await attemptSignedIn(agent, () => delivered(store.open(session.id), { text: words }, 'queue'))
    if (accepted === null) giveBack(session.id, words)
  }
  return (
    <Modal title="New session">
      <form className="stack" onSubmit={(event) => void create(event)}>
        <label className="field"><span className="label">Agent</span><AgentSelect value={agent} onChange={choose} /></label>
        {store.agents.find((each) => each.name === agent)?.signedIn === false && <small className="wrong"><Plain text={agent} /> is not signed in, as it last said.</small>}
        <div className="field">
          <label className="field">
            <span className="label">Folder</span>
            <input list="folders" value={folder} onChange={(e) => { setFolder(e.target.value); setWrong('') }} placeholder={own ?? 'The host’s start folder'} spellCheck={false} data-first="" aria-invalid={wrong !== ''} aria-describedby="folder-note" />
            <datalist id="folders">{recentFolders().map((path) => <option key={path} value={path} />)}</datalist>
          </label>
          <small id="folder-note" className={wrong ? 'wrong' : ''} role={wrong ? 'alert' : undefined}><Plain text={wrong || folderNote(folder.trim(), project, own)} /></small>
        </div>
        {hosts.length > 1 && (
          <label className="field"><span className="label">Host</span>
            <select value={host} onChange={(e) => setHost(e.target.value)}>
              <option value="">Least busy</option>
              {hosts.map((each) => <option key={each.name} value={each.name}>{reveal(each.name)}{each.here ? ' (this server)' : ''}</option>)}
            </select>
          </label>
        )}
        <details className="more" open={Boolean(mode || model) || told || fence !== 'off' || limits !== NO_LIMITS || offered !== EVERYTHING}>
          <summary>More options</summary>
          <Chosen label="Mode" choices={offer?.modes ?? []} value={mode} onChange={setMode} />
          <Chosen label="Model" choices={offer?.models ?? []} value={model} onChange={setModel} />
          <SystemPromptField value={system} onChange={setSystem} />
          <LimitFields value={limits} onChange={setLimits} />
          <OfferSwitches value={offered} onChange={setOffered} />
          <FenceField value={fence} onChange={setFence} />
        </details>
        <YoloNotice />
        <div className="options ending"><button type="button" onClick={() => shell.set({ dialog: null })}>Cancel</button><button type="submit" className="primary" disabled={busy || store.agents.length === 0}>{busy && <Spinner />} {busy ? 'Starting the agent…' : 'Start'}</button></div>
      </form>
      {busy && <AgentQuestions agent={agent} />}
    </Modal>
  )
}

const EVERYTHING: Offered = { files: true, terminals: true }

/** Sent whenever the session is opened; with an agent that accepts none it does not begin. */
function SystemPromptField({ value, onChange }: { value: SystemPrompt; onChange: (value: SystemPrompt) => void }) {
  return (
    <div className="field">
      <label className="field"><span className="label">System prompt</span>
        <textarea rows={3} value={value.text} onChange={(e) => onChange({ ...value, text: e.target.value })} placeholder="From your settings, if they have one" />
      </label>
      <label className="check"><input type="checkbox" checked={value.mode === 'override'} onChange={(e) => onChange({ ...value, mode: e.target.checked ? 'override' : 'append' })} /> Replace the built-in instructions</label>
    </div>
  )
}

const FENCES: Record<FenceMode, [string, string]> = {
  off: ['As in the settings', 'The settings of the server decide whether there is a fence.'],
  on: ['If the system can build one', 'The agent and its programs can write only in the folder.'],
  ask: ['Ask about writes outside', 'The agent and its programs can write only in the folder; you are asked about other files.'],
  require: ['Required', 'Without a fence the session does not start.'],
}

/** Stricter settings of the host count more. */
function FenceField({ value, onChange }: { value: FenceMode; onChange: (value: FenceMode) => void }) {
  return (
    <div className="field">
      <label className="field"><span className="label">Fence</span>
        <select value={value} onChange={(e) => onChange(e.target.value as FenceMode)} aria-describedby="fence-note">
          {Object.entries(FENCES).map(([mode, [name]]) => <option key={mode} value={mode}>{name}</option>)}
        </select>
      </label>
      <small id="fence-note">{FENCES[value][1]}</small>
    </div>
  )
}

/** What is off is not served, and the agent learns so before it starts. */
function OfferSwitches({ value, onChange }: { value: Offered; onChange: (value: Offered) => void }) {
  const off = !value.files || !value.terminals
  return (
    <fieldset className="field">
      <legend className="label">Available to the agent</legend>
      <label className="check"><input type="checkbox" checked={value.files} onChange={(e) => onChange({ ...value, files: e.target.checked })} /> Reading and writing files</label>
      <label className="check"><input type="checkbox" checked={value.terminals} onChange={(e) => onChange({ ...value, terminals: e.target.checked })} /> Running commands in terminals</label>
      <small>{off ? 'The agent may have its own tools for what is off; Dragoman does not check those.' : 'Your rules apply to every use.'}</small>
    </fieldset>
  )
}

/** Where the folder in the field comes from; nothing for one that was typed. */
function folderNote(folder: string, project: string | undefined, own: string | undefined): string {
  if (folder === '' || folder === own) return own ? 'The server’s start folder' : 'The host’s start folder'
  return folder === project ? 'The current project' : ''
}

/** The server names the folder that it has not. */
function isAbout(error: unknown, folder: string): error is ApiError {
  return error instanceof ApiError && (error.detail as { path?: string } | null)?.path === folder
}

interface ChosenProps { label: string; choices: Choice[]; value: string; onChange: (value: string) => void }

/** From what the agent offered before; of one that never ran here, the name has to be known. */
function Chosen({ label, choices, value, onChange }: ChosenProps) {
  return (
    <label className="field"><span className="label">{label}</span>
      {choices.length === 0
        ? <input aria-label={label} value={value} onChange={(e) => onChange(e.target.value)} placeholder="Agent’s default" spellCheck={false} />
        : (
          <select aria-label={label} value={value} onChange={(e) => onChange(e.target.value)}>
            <option value="">Agent’s default</option>
            {choices.map((choice) => <option key={choice.value} value={choice.value}>{reveal(choice.name)}</option>)}
          </select>
        )}
    </label>
  )
}

/** The default, which may be learnt while the dialog is open already, until another one is chosen. */
function useAgent(before?: string): [string, (name: string) => void] {
  useSignal(store.list)
  const [chosen, choose] = useState(before)
  return [chosen ?? defaultAgent(), choose]
}

function defaultAgent(): string {
  return (store.agents.find((agent) => agent.isDefault) ?? store.agents[0])?.name ?? 'demo'
}

function AgentSelect({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const usable = store.agents.filter((agent) => agent.state !== 'missing')
  const missing = store.agents.filter((agent) => agent.state === 'missing')
  return (
    <select value={value} onChange={(e) => onChange(e.target.value)}>
      {usable.map((agent) => <option key={agent.name} value={agent.name}>{reveal(agent.title || agent.name)}</option>)}
      {usable.length === 0 && <option value="demo">demo</option>}
      {missing.length > 0 && <optgroup label="Not installed">{missing.map((agent) => <option key={agent.name} value={agent.name} disabled>{reveal(agent.title || agent.name)}</option>)}</optgroup>}
    </select>
  )
}

export function ImportSession() {
  const [agent, setAgent] = useAgent()
  const [found, setFound] = useState<AgentSessionShape[] | null>(null)
  const [archived, setArchived] = useState(false)
  const [busy, setBusy] = useState('')
  const look = async (event?: FormEvent) => {
    event?.preventDefault()
    setBusy('list')
    const told = await attemptSignedIn(agent, () => api.sessions(agent, archived ? 'include' : undefined))
    setBusy('')
    setFound(told?.sessions ?? null)
  }
  const adoptAll = async () => {
    for (const session of found?.filter(({ knownAs }) => knownAs === null) ?? []) {
      setBusy(session.id)
      const made = await attemptSignedIn(agent, () => api.adopt(agent, session.id, session.cwd))
      if (made === null) break
      store.add(made)
      setFound((now) => now?.map((each) => (each.id === session.id ? { ...each, knownAs: made.id } : each)) ?? null)
    }
    setBusy('')
  }
  const adopt = async (session: AgentSessionShape) => {
    if (session.knownAs !== null) return open(session.knownAs)
    setBusy(session.id)
    const made = await attemptSignedIn(agent, () => api.adopt(agent, session.id, session.cwd))
    setBusy('')
    if (made === null) return
    store.add(made)
    open(made.id)
  }
  const open = (id: string) => {
    shell.set({ dialog: null, drawer: false })
    go(paths.session(id))
  }
  return (
    <Modal title="Import a session">
      <form className="stack" onSubmit={(event) => void look(event)}>
        <label className="field"><span className="label">Agent</span><AgentSelect value={agent} onChange={(name) => { setAgent(name); setFound(null) }} /></label>
        <label className="check"><input type="checkbox" checked={archived} onChange={(e) => setArchived(e.target.checked)} /> Archived ones too</label>
        <div className="options ending"><button type="button" onClick={() => shell.set({ dialog: null })}>Cancel</button><button type="submit" className="primary" disabled={busy !== ''}>{busy === 'list' && <Spinner />} List its sessions</button></div>
      </form>
      {busy !== '' && <AgentQuestions agent={agent} />}
      {(found?.filter(({ knownAs }) => knownAs === null).length ?? 0) > 1 && <button type="button" disabled={busy !== ''} onClick={() => void adoptAll()}>Import all {found?.filter(({ knownAs }) => knownAs === null).length}</button>}
      {found?.length === 0 && <p className="empty">The agent has no sessions.</p>}
      <ul className="hits">
        {found?.map((session) => (
          <li key={session.id}>
            <button type="button" className="hit" disabled={busy !== ''} onClick={() => void adopt(session)}>
              <strong><Plain text={session.title ?? session.id} /></strong>
              {session.knownAs !== null && <span className="tag">already imported</span>}
              {session.archived === true && <span className="tag">archived</span>}
              {session.status !== null && <span className="tag"><Plain text={session.status} /></span>}
              <span className="snippet"><Plain text={session.cwd} /> {session.updatedAt && ago(session.updatedAt)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Modal>
  )
}

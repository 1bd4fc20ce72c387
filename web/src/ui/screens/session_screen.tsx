// One session: its header, thread, composer and side pane.

import { useEffect, useState, type CSSProperties, type FormEvent } from 'react'
import { fenceLabel, fenceWords } from '../../core/fence'
import { baseName } from '../../core/text/format'
import { titleOf } from '../../core/session/listing'
import { reveal } from '../../core/text/safe_text'
import { ApiError, sessions, type Summary } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { useRefetch } from '../common/refetch'
import { Composer } from '../composer/composer'
import { fileDrop } from '../composer/file_drop'
import { Handoff } from './handoff'
import { DeletedSession, MissingSession } from './missing_session'
import { UntrustedLine } from './project_rules'
import { SignedOutLine } from './sign_in'
import { Icon } from '../common/icons'
import { ContextMeter } from '../pane/context_meter'
import { rememberOptions } from '../sidebar/remembered_options'
import { NameTag } from '../sidebar/name_tag'
import { recentFolders } from '../start/recent_folders'
import { ErrorBoundary } from '../common/error_boundary'
import { Plain } from '../common/plain_text'
import { paths } from '../shell/route'
import { attempt, shell } from '../shell/shell'
import { PaneEdge, usePaneWidth } from '../pane/pane_edge'
import { SidePane } from '../pane/side_pane'
import { StatusMark } from '../common/status_mark'
import { Transcript } from '../thread/transcript'
import { PermissionSummary } from '../permissions/yolo'

export function SessionScreen({ id, entry }: { id: string; entry: number | null }) {
  const session = store.open(id)
  useSignal(session.facts)
  useSignal(shell.signal)
  useEffect(() => void session.load(), [session])
  useEffect(() => {
    if (!document.hidden) store.see(id)
  })
  useEffect(() => rememberOptions(session.state), [session, session.state.modes, session.state.configOptions])
  useSignal(store.list)
  const [width, setWidth] = usePaneWidth()
  const summary = store.summaries.get(id)
  const unplaced = summary?.cwd === '' ? summary : null
  const host = summary?.host
  const lost = host && !host.alive ? host : null
  if (session.error !== null && !session.loaded) return <MissingSession session={session} />
  const pane = shell.pane && !session.gone
  return (
    <div className={`sessionscreen ${pane ? 'withpane' : ''}`} style={{ '--pane': `${width}px` } as CSSProperties}>
      <main className="thread" aria-label="Session" {...(session.gone ? {} : fileDrop(id))}>
        <ErrorBoundary name="session header"><Head session={session} /></ErrorBoundary>
        <ErrorBoundary name="thread"><Transcript key={id} session={session} entry={entry} find={shell.find} /></ErrorBoundary>
        {session.loaded && session.state.entries.length === 0 && <ErrorBoundary name="hints"><Hints session={session} /></ErrorBoundary>}
        {session.loaded && !session.gone && <ErrorBoundary name="project’s rules"><UntrustedLine session={session} /></ErrorBoundary>}
        {session.loaded && !session.gone && <ErrorBoundary name="sign-in"><SignedOutLine session={session} /></ErrorBoundary>}
        {lost && !session.gone && <Stranded session={session} host={lost.name} />}
        {session.gone ? <DeletedSession session={session} /> : unplaced ? <Unplaced session={unplaced} /> : <ErrorBoundary name="composer"><Composer session={session} main /></ErrorBoundary>}
      </main>
      {pane && <PaneEdge width={width} change={setWidth} />}
      {pane && <ErrorBoundary name="side pane" place="pane" of={shell.tab}><SidePane session={session} /></ErrorBoundary>}
    </div>
  )
}

function Head({ session }: { session: LiveSession }) {
  useSignal(store.list)
  const { state } = session
  const summary = store.summaries.get(session.id)
  return (
    <header className="head">
      <h1><Plain text={summary ? titleOf(summary) : state.title ?? 'Session'} /></h1>
      <div className="facts">
        {summary && <StatusMark session={summary} />}
        {summary && <NameTag session={summary} />}
        {summary?.cwd !== '' && <span title={reveal(state.cwd)}><Icon name="folder" /> <Plain text={baseName(state.cwd)} /></span>}
        <span><Icon name="bot" /> <Plain text={state.agent || (summary?.agent ?? '')} /></span>
        {state.usage && <ContextMeter usage={state.usage} />}
        {session.loaded && <span className="tag" title={fenceWords(state.fence, state.network)}>{fenceLabel(state.fence, state.network)}</span>}
        {summary && <Place session={summary} />}
        {summary?.parent && <a href={paths.session(summary.parent)}><Icon name="fork" /> forked</a>}
      </div>
      <div className="headtools">
        <button type="button" className="ghost" title="Find in transcript (Ctrl F)" aria-label="Find in transcript" onClick={() => shell.set({ find: !shell.find })}><Icon name="search" /></button>
        {!session.gone && <HeadActions session={session} />}
      </div>
    </header>
  )
}

function HeadActions({ session }: { session: LiveSession }) {
  return (
    <>
      <button type="button" className="ghost" title="Fork (f)" aria-label="Fork session" onClick={() => shell.open({ name: 'fork', session: session.id })}><Icon name="fork" /></button>
      <Handoff session={session} />
      <button type="button" className="ghost" title="Side pane" aria-label="Side pane" aria-pressed={shell.pane} onClick={() => shell.set({ pane: !shell.pane })}><Icon name="pane" /></button>
    </>
  )
}

/** Where it runs, if that is not this server. */
function Place({ session: { host, owner } }: { session: Summary }) {
  if (host !== null && !host.here) return <span className={`tag ${host.alive ? '' : 'high'}`}>on <Plain text={host.name} />{!host.alive && ', offline'}</span>
  if (owner === null || owner.here) return null
  return <span className="tag" title={`Process ${owner.pid}`}>run by <Plain text={owner.label} /></span>
}

/** Its host is not there: others that have the agent can continue it. */
function Stranded({ session, host }: { session: LiveSession; host: string }) {
  const hosts = useRefetch(session.id, 0, () => sessions.state(session.id, 0)).value?.resumeOn ?? []
  const move = async (to: string) => {
    try {
      store.add(await sessions.move(session.id, to, false))
    } catch (error) {
      const forgotten = error instanceof ApiError && error.code === 'not_continued'
      if (!forgotten || !window.confirm(`${reveal(error.message, true)}\n\nContinue anyway, without the agent’s memory?`)) return shell.fail(error)
      const moved = await attempt(sessions.move(session.id, to, true))
      if (moved !== null) store.add(moved)
    }
  }
  return (
    <div className="notice warning stranded" role="status">
      <Icon name="alert" /> <span>The host of this session, <strong><Plain text={host} /></strong>, is offline. {hosts.length === 0 && 'No other host offers its agent.'}</span>
      {hosts.map((name) => <button key={name} type="button" onClick={() => void move(name)}>Continue on <Plain text={name} /></button>)}
    </div>
  )
}

/** In the place of the composer: it was imported, and no file chooses the folder that an agent works in. */
function Unplaced({ session }: { session: Summary }) {
  const [folder, setFolder] = useState('')
  const give = async (event: FormEvent) => {
    event.preventDefault()
    const placed = await attempt(sessions.change(session.id, { cwd: folder.trim() }))
    if (placed !== null) store.add(placed)
  }
  return (
    <form className="notice stranded" onSubmit={(event) => void give(event)}>
      <Icon name="folder" />
      <span>This session was imported{session.importedFrom && <> from <code><Plain text={session.importedFrom} /></code></>}. Choose a folder for its agent to work in.</span>
      <input aria-label="Folder" list="folders" value={folder} required spellCheck={false} placeholder="/home/me/project" onChange={(event) => setFolder(event.target.value)} />
      <datalist id="folders">{recentFolders().map((path) => <option key={path} value={path} />)}</datalist>
      <button type="submit">Use this folder</button>
    </form>
  )
}

function Hints({ session }: { session: LiveSession }) {
  const commands = session.state.commands.slice(0, 4)
  return (
    <div className="hints">
      <h2>What should the agent do?</h2>
      <p>The agent works in <code><Plain text={session.state.cwd} /></code>. <PermissionSummary /></p>
      <ul>
        <li>Type <kbd>@</kbd> to mention a file, or drop one here to attach it.</li>
        {commands.length > 0 && <li>Commands: {commands.map((command) => <code key={command.name}>/<Plain text={command.name} /> </code>)}</li>}
        <li>Press <kbd>?</kbd> for keyboard shortcuts.</li>
      </ul>
    </div>
  )
}

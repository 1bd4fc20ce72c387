// One row of the thread, drawn by its kind. It draws again when its own entry changes, and only then.

import { memo, useSyncExternalStore } from 'react'
import { bytes, clock, duration } from '../core/format'
import { contentOf, entryText, type Entry, type Spoken } from '../core/state'
import { reveal } from '../core/visible'
import type { LiveSession } from '../live/session'
import { ContentView, Unknown } from './content_view'
import { copy } from './copy'
import { useFold } from './folds'
import { Icon, Spinner } from './icons'
import { Plain } from './plain'
import { PlanView } from './plan_view'
import { paths } from './route'
import { ToolCallView } from './tool_call'

interface Props { session: LiveSession; entry: Entry; place: number }

export const EntryView = memo(function EntryView({ session, entry, place }: Props) {
  useSyncExternalStore((listener) => session.watch(entry, listener), () => entry.version)
  return (
    <>
      <Body session={session} entry={entry} place={place} />
      {entry.cut > 0 && <p className="quiet cut">… {bytes(entry.cut)} more: too much to be shown here. The session’s export has all of it.</p>}
      <Actions session={session} entry={entry} place={place} />
    </>
  )
})

function Body({ session, entry, place }: Props) {
  switch (entry.type) {
    case 'user': return <Said who="You" entry={entry} />
    case 'agent': return <Said who={null} entry={entry} />
    case 'thought': return <Thought session={session} entry={entry} place={place} />
    case 'tool_call': return <ToolCallView session={session} call={entry} />
    case 'plan': return entry.steps.length || entry.markdown || entry.uri ? <PlanView plan={entry} /> : null
    case 'notice':
      return (
        <div className={`notice ${entry.severity}`}>
          <Icon name={entry.severity === 'info' ? 'info' : 'alert'} />
          <span><strong><Plain text={entry.title} /></strong>{entry.description && <> <Plain text={entry.description} lines /></>}</span>
          {entry.source === 'client' && <span className="tag">Dragoman</span>}
        </div>
      )
    case 'compaction': return <Compaction session={session} entry={entry} />
    case 'peer_message':
      return (
        <div className="peer">
          <div className="who">Between agents: <Plain text={`${speaker(session, entry.sender_session_id)} → ${speaker(session, entry.recipient_session_id)}`} /></div>
          {entry.content.map((part, at) => <ContentView key={at} content={part} />)}
        </div>
      )
    case 'reset':
      return <div className="reset" role="note"><span>The agent’s memory was lost here: it knows nothing of what stands above.</span></div>
    case 'error':
      return <div className="notice error"><Icon name="alert" /> <span><strong>The turn was cut short:</strong> <Plain text={entry.message} lines /></span></div>
    case 'unknown': return <Unknown kind={entry.kind} raw={entry.raw} />
  }
}

/** What to call one who has a part in a session. */
function speaker({ state }: LiveSession, id: string | null): string {
  if (id === null) return '?'
  return id === state.session_id ? 'the agent' : state.subagents.get(id)?.title || id
}

function Said({ who, entry }: { who: string | null; entry: Spoken }) {
  return (
    <div className={`said ${entry.type}`}>
      {who !== null && <div className="who">{who} <time>{clock(entry.at)}</time></div>}
      {contentOf(entry).map((part, at) => <ContentView key={at} content={part} />)}
    </div>
  )
}

function Thought({ session, entry, place }: { session: LiveSession; entry: Spoken; place: number }) {
  const [open, toggle] = useFold(`${session.id}:thought:${place}`, false)
  const last = session.state.entries.at(-1) === entry && session.state.turns.at(-1)?.status === 'streaming'
  const seconds = entry.until - entry.at
  return (
    <div className="thought">
      <button type="button" className="ghost" data-fold="" aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" className={open ? 'turned' : ''} /> {last ? <Spinner /> : <Icon name="think" />}
        {last ? 'Thinking' : 'Thought'}{seconds >= 1 && ` for ${duration(seconds)}`}
        {!open && <span className="preview"><Plain text={entryText(entry).slice(0, 140)} /></span>}
      </button>
      {open && contentOf(entry).map((part, at) => <ContentView key={at} content={part} />)}
    </div>
  )
}

const COMPACTED: Record<string, string> = {
  in_progress: 'The context is being shortened', completed: 'The context was shortened', cancelled: 'The context was not shortened',
}

function Compaction({ session, entry }: { session: LiveSession; entry: Extract<Entry, { type: 'compaction' }> }) {
  const [open, toggle] = useFold(`${session.id}:compaction:${entry.id}`, false)
  const failed = entry.status === 'failed' || entry.error !== null
  const words = failed ? 'The context could not be shortened' : COMPACTED[entry.status] ?? `The context: ${reveal(entry.status)}`
  const icon = entry.status === 'in_progress' ? <Spinner /> : <Icon name={failed ? 'alert' : 'archive'} />
  return (
    <div className="compaction">
      {entry.summary.length === 0
        ? <p className="quiet">{icon} {words}</p>
        : <button type="button" className="ghost" data-fold="" aria-expanded={open} onClick={toggle}><Icon name="chevron" className={open ? 'turned' : ''} /> {icon} {words}</button>}
      {entry.error !== null && <p className="removed"><Plain text={entry.error} lines /></p>}
      {open && entry.summary.map((part, at) => <ContentView key={at} content={part} />)}
    </div>
  )
}

function Actions({ session, entry, place }: Props) {
  const address = () => location.origin + location.pathname + paths.entry(session.id, place)
  return (
    <div className="actions">
      <button type="button" className="ghost" title="Copy text" aria-label="Copy text" onClick={() => copy(entryText(entry), 'Text')}><Icon name="copy" /></button>
      <button type="button" className="ghost" title="Copy link" aria-label="Copy link to this entry" onClick={() => copy(address(), 'Link')}><Icon name="link" /></button>
    </div>
  )
}

// One row of the thread, drawn by its kind. It draws again when its own entry changes, and only then.

import { memo, useSyncExternalStore } from 'react'
import { bytes, clock, duration, plural, sentence, table } from '../../core/text/format'
import { contentOf, entryText, type Entry, type Spoken, type Subagent } from '../../core/session/state'
import { reveal, visible } from '../../core/text/safe_text'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { ContentView, Unknown } from './content_view'
import { copy } from '../common/clipboard'
import { giveBack } from '../composer/drafts'
import { useCollapse } from '../common/collapse'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { PlanView } from './plan_view'
import { paths } from '../shell/route'
import { shell } from '../shell/shell'
import { ToolCallView } from './tool_call'

/** `subagent` is the one whose thread it is in, else it is in the session's. */
interface Props { session: LiveSession; entry: Entry; place: number; subagent?: Subagent }

export const EntryView = memo(function EntryView({ session, entry, place, subagent }: Props) {
  useSyncExternalStore((listener) => session.watch(entry, listener), () => entry.version)
  return (
    <>
      <Body session={session} entry={entry} place={place} {...(subagent && { subagent })} />
      {entry.cut > 0 && <p className="quiet cut">… {bytes(entry.cut)} more: too large to display. The session export has all of it.</p>}
      {subagent === undefined && <Actions session={session} entry={entry} place={place} />}
    </>
  )
})

function Body({ session, entry, place, subagent }: Props) {
  switch (entry.type) {
    case 'user': return <Said session={session} entry={entry} />
    case 'agent': return <Message who={null} entry={entry} />
    case 'thought': return <Thought session={session} entry={entry} place={subagent === undefined ? String(place) : `${subagent.sessionId}:${entry.seq}`} />
    case 'tool_call': return <ToolCallView session={session} call={entry} subagent={subagent ?? null} />
    case 'plan': return entry.steps.length || entry.markdown || entry.uri ? <PlanView session={session} plan={entry} /> : null
    case 'notice':
      return (
        <div className={`notice ${entry.severity}`}>
          <Icon name={entry.severity === 'info' ? 'info' : 'alert'} />
          <Told lead={entry.source === 'client' ? sentence(entry.title, session.state.cwd) : entry.title} more={entry.description} />
          {entry.source === 'client' && <OtherSession words={entry.title} />}
          {entry.source === 'client' && <span className="tag">Dragoman</span>}
        </div>
      )
    case 'compaction': return <Compaction session={session} entry={entry} />
    case 'peer_message':
      return (
        <div className="peer">
          <div className="who">Between agents: <Plain text={`${speaker(session, entry.senderSessionId)} → ${speaker(session, entry.recipientSessionId)}`} /></div>
          {entry.content.map((part, at) => <ContentView key={at} content={part} />)}
        </div>
      )
    case 'reset':
      return <div className="reset" role="note"><span>The agent lost its memory here: it knows nothing of the transcript above.</span></div>
    case 'error':
      return <div className="notice error"><Icon name="alert" /> <Told lead="The turn was cut short:" more={entry.message} /></div>
    case 'unknown': return <Unknown kind={entry.kind} raw={entry.raw} />
  }
}

const FEW_LINES = 6

/** A sentence in bold and one after it; further lines, such as a program's output, go below. */
/** The way to the session that a notice of ours is about: one that continues this one, or was started by it. */
function OtherSession({ words }: { words: string }) {
  const id = /\bsession (s-[0-9a-f]{16})\b/.exec(words)?.[1]
  return id === undefined ? null : <a href={paths.session(id)}>open</a>
}

function Told({ lead, more }: { lead: string; more: string | null }) {
  const [title = '', ...below] = lead.trimEnd().split('\n')
  const [first = '', ...rest] = (more ?? '').trimEnd().split('\n')
  const lines = below.length ? [...below, ...(more ? [first, ...rest] : [])] : rest
  const text = lines.join('\n')
  const follows = below.length === 0 && first !== ''
  return (
    <div className="told">
      <strong><Plain text={title} />{follows && !/[.:!?]$/.test(title) && ':'}</strong>{follows && <> <Plain text={first} /></>}
      {text.trim() && (
        <details open={lines.length <= FEW_LINES}>
          <summary>{plural(lines.length, 'more line')}</summary>
          <pre tabIndex={0} aria-label="More of this message">{visible(text)}</pre>
        </details>
      )}
    </div>
  )
}

/** What to call one who has a part in a session. */
function speaker({ state }: LiveSession, id: string | null): string {
  if (id === null) return '?'
  return id === state.sessionId ? 'the agent' : state.subagents.get(id)?.title || id
}

const STEERED = {
  delivered: 'You, into the turn', started: 'You, into the turn', queued: 'You',
  refused: 'You, not delivered', unsure: 'You, perhaps not delivered',
} as const

/** What the user said; into a running turn it may have gone wrong. */
function Said({ session, entry }: { session: LiveSession; entry: Extract<Entry, { type: 'user' }> }) {
  const who = entry.steer !== null ? STEERED[entry.steer] : entry.reported ? 'You, as reported by the agent' : 'You'
  return (
    <>
      <Message who={who} entry={entry} />
      {(entry.steer === 'refused' || entry.steer === 'unsure') && (
        <div className="notice warning">
          <Icon name="alert" />
          <Told lead={entry.steer === 'refused' ? 'The agent did not take this.' : 'The agent may have taken this. It was not sent again.'} more={entry.reason} />
          <button type="button" onClick={() => giveBack(session.id, entryText(entry))}>Write it again</button>
        </div>
      )}
    </>
  )
}

function Message({ who, entry }: { who: string | null; entry: Spoken }) {
  return (
    <div className={`said ${entry.type}`}>
      {who !== null && <div className="who">{who} <time>{clock(entry.at)}</time></div>}
      {contentOf(entry).map((part, at) => <ContentView key={at} content={part} words={entry.type === 'user' ? 'typed' : 'markdown'} />)}
    </div>
  )
}

function Thought({ session, entry, place }: { session: LiveSession; entry: Spoken; place: string }) {
  const [open, toggle] = useCollapse(`${session.id}:thought:${place}`, false)
  const seconds = entry.until - entry.at
  return (
    <div className="thought">
      <button type="button" className="ghost" data-fold="" aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" className={open ? 'turned' : ''} /> <ThoughtMark session={session} entry={entry} />
        {seconds >= 1 && ` for ${duration(seconds)}`}
        {!open && <span className="preview"><Plain text={entryText(entry).slice(0, 140)} /></span>}
      </button>
      {open && contentOf(entry).map((part, at) => <ContentView key={at} content={part} />)}
    </div>
  )
}

/** The end of a turn changes no entry: it is looked for here. */
function ThoughtMark({ session, entry }: { session: LiveSession; entry: Spoken }) {
  useSignal(session.facts)
  const now = session.state.entries.at(-1) === entry && session.state.turns.at(-1)?.status === 'streaming'
  return now ? <><Spinner /> Thinking</> : <><Icon name="think" /> Thought</>
}

const COMPACTED = table<string>({
  in_progress: 'Compacting the context', completed: 'Context compacted', cancelled: 'Context not compacted',
})

function Compaction({ session, entry }: { session: LiveSession; entry: Extract<Entry, { type: 'compaction' }> }) {
  const [open, toggle] = useCollapse(`${session.id}:compaction:${entry.id}`, false)
  const failed = entry.status === 'failed' || entry.error !== null
  const words = failed ? 'Could not compact the context' : COMPACTED[entry.status] ?? `Context compaction: ${reveal(entry.status)}`
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
      {entry.type === 'user' && entry.turnId !== null && !session.past && !session.gone && (
        <button type="button" className="ghost" title="Rewind to before this message" aria-label="Rewind to before this message" onClick={() => shell.open({ name: 'rewind', session: session.id, turnId: entry.turnId ?? '' })}><Icon name="undo" /></button>
      )}
      <button type="button" className="ghost" title="Copy text" aria-label="Copy text" onClick={() => copy(entryText(entry), 'Text')}><Icon name="copy" /></button>
      <button type="button" className="ghost" title="Copy link" aria-label="Copy link to this entry" onClick={() => copy(address(), 'Link')}><Icon name="link" /></button>
    </div>
  )
}

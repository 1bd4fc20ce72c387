// A tool call as reported by the agent: its kind, status, locations, input and output.

import { useMemo, type ReactNode } from 'react'
import type { Diff } from '../../core/generated/content'
import { diffRows } from '../../core/changes/diff'
import { within, table } from '../../core/text/format'
import { isAtWork, type Pending, type Subagent, type ToolCall } from '../../core/session/state'
import { visible } from '../../core/text/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { DiffCounts } from './diff_view'
import { useCollapse } from '../common/collapse'
import { Icon, Ring, Spinner, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { titleOf } from '../permissions/permission_subject'
import { StopOne } from '../composer/stop_button'
import { ToolContentView } from './tool_content'

const KINDS = table<IconName>({
  read: 'read', edit: 'edit', delete: 'trash', move: 'move', search: 'find', execute: 'run',
  think: 'think', fetch: 'globe', switch_mode: 'switch',
})

const KIND_WORDS = table<string>({ read: 'read a file', edit: 'edit a file', delete: 'delete a file', move: 'move a file', execute: 'run a command', fetch: 'fetch from the network' })

const OVER: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

export function ToolCallView({ session, call, subagent = null }: { session: LiveSession; call: ToolCall; subagent?: Subagent | null }) {
  const owner = subagent?.sessionId ?? null
  const telling = call.content.some((item) => item.type !== 'content') || call.status === 'failed'
  const question = [...session.state.pending.values()].find((pending) => pending.toolCallId === call.id && pending.subagent === owner)
  const asked = question !== undefined
  // The card below shows what is asked; there is no need to repeat it here.
  const [open, toggle] = useCollapse(`${session.id}:${owner === null ? '' : `${owner}:`}${call.id}`, telling && !asked)
  const { cwd } = session.state
  return (
    <div className={`tool ${call.status}`}>
      <div className="toolline">
        <button type="button" className="toolhead" data-fold="" aria-expanded={open} onClick={toggle}>
          <Icon name="chevron" className={open ? 'turned' : ''} />
          <Icon name={KINDS[call.kind] ?? 'tool'} />
          <span className="hidden"><Plain text={call.kind.replaceAll('_', ' ')} />:</span>
          <span className="title"><Plain text={repeats(call, question, cwd) ? `Asks to ${KIND_WORDS[call.kind] ?? 'continue'}` : call.title || call.name || call.id} /></span>
          <Totals call={call} />
          {OVER.has(call.status) ? <ToolStatus status={call.status} /> : <OpenStatus session={session} status={asked ? 'waiting' : call.status} />}
        </button>
        {call.cancellable && subagent === null && !OVER.has(call.status) && <StopOne session={session} what="this tool call" stop={() => sessions.cancelToolCall(session.id, call.id)} />}
      </div>
      {open && (
        <div className="toolbody">
          <Locations call={call} cwd={cwd} />
          {call.content.map((item, at) => <ToolContentView key={at} session={session} item={item} cwd={cwd} subagent={subagent} />)}
          <Raw label="Input" value={call.rawInput} />
          <Raw label="Output" value={call.rawOutput} />
        </div>
      )}
    </div>
  )
}

/** While its card shows the command or the file, the row does not. */
function repeats({ title }: ToolCall, question: Pending | undefined, cwd: string): boolean {
  return question?.kind === 'permission' && title !== '' && titleOf({ ...question, title }, cwd) === ''
}

/** An agent may leave a call open; it does not run when nothing does. */
function OpenStatus({ session, status }: { session: LiveSession; status: string }) {
  useSignal(session.facts)
  return <ToolStatus status={isAtWork(session.state) ? status : 'unfinished'} />
}

export function ToolStatus({ status }: { status: string }) {
  const drawing = table<[ReactNode, string]>({
    pending: [<Icon key="i" name="clock" />, 'pending'],
    in_progress: [<Spinner key="i" />, 'running'],
    waiting: [<Icon key="i" name="alert" />, 'waiting for you'],
    completed: [<Icon key="i" name="check" />, 'done'],
    failed: [<Icon key="i" name="cross" />, 'failed'],
    unfinished: [<Ring key="i" begun />, 'not finished'],
    cancelled: [<Icon key="i" name="stop" />, 'cancelled'],
  })
  const [icon, word] = drawing[status] ?? [<Icon key="i" name="info" />, status]
  return <span className={`status ${status}`}>{icon} <Plain text={word} /></span>
}

function Totals({ call }: { call: ToolCall }) {
  const diffs = call.content.filter((item): item is Diff => item.type === 'diff')
  const totals = useMemo(() => {
    const files = diffs.map((diff) => diffRows(diff))
    return {
      added: files.reduce((sum, file) => sum + file.added, 0),
      removed: files.reduce((sum, file) => sum + file.removed, 0),
      created: false,
      unchanged: files.every((file) => file.unchanged),
    }
  }, [call.content])
  return diffs.length ? <DiffCounts file={totals} /> : null
}

function Locations({ call, cwd }: { call: ToolCall; cwd: string }) {
  const drawn = new Set(call.content.map((item) => (item.type === 'diff' ? item.path : '')))
  const places = call.locations.filter((place) => place.line != null || !drawn.has(place.path))
  if (places.length === 0) return null
  return (
    <ul className="locations">
      {places.map((place, at) => (
        <li key={at}><code><Plain text={within(place.path, cwd) + (place.line == null ? '' : `:${place.line}`)} /></code></li>
      ))}
    </ul>
  )
}

const MAX_RAW = 20_000

export function Raw({ label, value }: { label: string; value: unknown }) {
  if (value === null || value === undefined) return null
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const cut = text.length > MAX_RAW
  return (
    <details className="raw">
      <summary>{label}</summary>
      <pre tabIndex={0} aria-label={label}>{visible(cut ? text.slice(0, MAX_RAW) : text)}{cut && '\n…'}</pre>
    </details>
  )
}

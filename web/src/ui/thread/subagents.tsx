// Subagents: each is shown in the thread where it started, with what it told and with those that it
// started itself, to any depth.

import { useState, useSyncExternalStore } from 'react'
import type { Json } from '../../core/generated/content'
import { clock, plural, table } from '../../core/text/format'
import { placed, subagentAtWork, type Entry, type SessionState, type Subagent, type ToolCall } from '../../core/session/state'
import { reveal } from '../../core/text/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useCollapse } from '../common/collapse'
import { StopOne } from '../composer/stop_button'
import { EntryView } from './entry_view'
import { Icon, Spinner, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { attempt } from '../shell/shell'
import { Raw } from './tool_call'

const DEEPEST = 3
const MOST_SHOWN = 200

/** One subagent with what it told, and below it those that it started. */
export function SubagentView({ session, child, depth = 1 }: { session: LiveSession; child: Subagent; depth?: number }) {
  useSyncExternalStore((listener) => session.watch(child, listener), () => child.version)
  const [open, toggle] = useCollapse(`subagent:${child.sessionId}`, false)
  const { state, stopped } = doing(child)
  const started = startedBy(session.state, child.sessionId)
  const asks = [...session.state.pending.values()].some(({ subagent }) => subagent === child.sessionId)
  return (
    <div className="tool subagent" aria-label="Subagent" role="group">
      <div className="toolline">
        <button type="button" className="toolhead" data-fold="" aria-expanded={open} onClick={toggle}>
          <Icon name="chevron" className={open ? 'turned' : ''} />
          <Icon name="bot" />
          <span className="title"><span className="kind">Subagent: </span><Plain text={nameOf(session.state, child)} />{child.description && !open && <span className="quiet"> <Plain text={child.description} /></span>}</span>
          {state && <SubagentState state={asks ? 'requires_action' : state === 'idle' && stopped === 'cancelled' ? stopped : state} />}
        </button>
        {child.capabilities?.cancel != null && subagentAtWork(child) && (
          <StopOne session={session} what={`the subagent ${reveal(nameOf(session.state, child))}`} stop={() => sessions.cancelSubagent(session.id, child.sessionId)} />
        )}
      </div>
      {open && (
        <div className="toolbody">
          {child.description && <p><Plain text={child.description} lines /></p>}
          <p className="quiet">Started {clock(child.at)}{child.cwd && <> in <code><Plain text={child.cwd} /></code></>}{stopped && <>, ended: <Plain text={stopped} /></>}{child.toolCallId === null && <>. Session: <code><Plain text={child.sessionId} /></code></>}</p>
          <Thread session={session} child={child} />
          <Raw label="State" value={child.state} />
        </div>
      )}
      {(open || depth < DEEPEST) && started.map((each) => <SubagentView key={each.sessionId} session={session} child={each} depth={depth + 1} />)}
    </div>
  )
}

/** The newest of what it told; its questions are at the end of the session's thread. */
function Thread({ session, child }: { session: LiveSession; child: Subagent }) {
  const [most, setMost] = useState(MOST_SHOWN)
  const [busy, setBusy] = useState(false)
  const { entriesBefore, usage } = child.thread
  const entries = session.earlierOf(child).concat(child.thread.entries)
  const shown = entries.slice(-most)
  const left = entriesBefore + child.thread.entries.length - shown.length
  const more = async () => {
    setBusy(true)
    if (shown.length === entries.length) await attempt(session.lookBackAt(child))
    setBusy(false)
    setMost(most + MOST_SHOWN)
  }
  return (
    <div className="subthread">
      {left > 0 && <p className="quiet"><button type="button" className="small" disabled={busy} onClick={() => void more()}>{busy && <Spinner />} Show earlier rows</button> {plural(left, 'earlier row')}</p>}
      {shown.map((entry) => <div key={entry.seq} className="subentry" data-kind={entry.type}><EntryView session={session} entry={entry} place={-1} subagent={child} /></div>)}
      {usage !== null && <p className="quiet">Context: {usage.used.toLocaleString('en')} of {usage.size.toLocaleString('en')} tokens</p>}
    </div>
  )
}

function doing(child: Subagent): { state: string; stopped: string } {
  const { state, stopReason } = child.state ?? {}
  return { state: typeof state === 'string' ? state : '', stopped: typeof stopReason === 'string' ? stopReason : '' }
}

/** With a number, if the same agent started others with the same name before: questions say it too. */
function nameOf({ subagents }: SessionState, child: Subagent): string {
  const name = child.title || child.sessionId
  const alike = [...subagents.values()].filter((each) => each.parent === child.parent && (each.title || each.sessionId) === name)
  const number = alike.indexOf(child)
  return number > 0 ? `${name} ${number + 1}` : name
}

function startedBy({ subagents }: SessionState, parent: string): Subagent[] {
  return [...subagents.values()].filter((each) => each.parent === parent && each.sessionId !== parent)
}

const DRAWN = table<string>({ running: 'running', idle: 'completed', requires_action: 'waiting' })
const ICONS = table<IconName>({ idle: 'check', requires_action: 'alert', cancelled: 'stop' })
const WORDS = table<string>({ idle: 'idle', requires_action: 'needs an answer' })

function SubagentState({ state }: { state: string }) {
  const icon = state === 'running' ? <Spinner /> : <Icon name={ICONS[state] ?? 'info'} />
  return <span className={`status ${DRAWN[state] ?? ''}`}>{icon} <Plain text={WORDS[state] ?? state} /></span>
}

/** The subagents to show after each entry, by the entry's index. */
export function subagentsAfter({ subagents, entries }: SessionState): Map<number, Subagent[]> {
  const found = new Map<number, Subagent[]>()
  for (const child of subagents.values()) {
    // One that another subagent started is drawn below that one.
    if (child.parent !== null && subagents.has(child.parent)) continue
    const at = lastBefore(entries, child.seq)
    // Entries that are not loaded yet bring their own subagents.
    if (at < 0 && child.seq > 0 && entries.length > 0) continue
    const place = Math.max(0, at)
    found.set(place, [...(found.get(place) ?? []), child])
  }
  return found
}

function lastBefore(entries: SessionState['entries'], seq: number): number {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((entries[middle]?.seq ?? 0) < seq) low = middle + 1
    else high = middle
  }
  return low - 1
}

/** How deep a tool call lies under those it was made for. */
export function nesting(state: SessionState, at: number): number {
  let depth = 0
  let entry = state.entries[at]
  while (entry?.type === 'tool_call' && depth < DEEPEST) {
    const parent = parentOf(entry)
    const above: Entry | undefined = parent === null ? undefined : placed(state, `tool:${parent}`)
    if (above === undefined || above === entry) break
    entry = above
    depth++
  }
  return depth
}

/** The protocol has no field for this; Claude's agent sends it in `_meta`. */
function parentOf(call: ToolCall): string | null {
  const told = call.meta?.claudeCode as Json | undefined
  return typeof told?.parentToolUseId === 'string' ? told.parentToolUseId : null
}

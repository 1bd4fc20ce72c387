// Subagents: each is shown in the thread where it started, and its known tool calls are indented under
// the call that started it.

import type { Json } from '../../core/generated/content'
import { clock, table } from '../../core/format'
import { placed, type Entry, type SessionState, type Subagent, type ToolCall } from '../../core/state'
import { useCollapse } from '../common/collapse'
import { Icon, Spinner, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { Raw } from './tool_call'

const DEEPEST = 3

export function SubagentView({ child }: { child: Subagent }) {
  const [open, toggle] = useCollapse(`subagent:${child.sessionId}`, false)
  const state = typeof child.state?.state === 'string' ? child.state.state : ''
  const stopped = typeof child.state?.stopReason === 'string' ? child.state.stopReason : ''
  return (
    <div className="tool subagent" aria-label="Subagent" role="group">
      <button type="button" className="toolhead" data-fold="" aria-expanded={open} onClick={toggle}>
        <Icon name="chevron" className={open ? 'turned' : ''} />
        <Icon name="bot" />
        <span className="title">Subagent: <Plain text={child.title || child.sessionId} /></span>
        {state && <SubagentState state={state === 'idle' && stopped === 'cancelled' ? stopped : state} />}
      </button>
      {open && (
        <div className="toolbody">
          {child.description && <p><Plain text={child.description} lines /></p>}
          <p className="quiet">Started {clock(child.at)}{child.cwd && <> in <code><Plain text={child.cwd} /></code></>}{stopped && <>, ended: <Plain text={stopped} /></>}. Session: <code><Plain text={child.sessionId} /></code></p>
          <Raw label="State" value={child.state} />
        </div>
      )}
    </div>
  )
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

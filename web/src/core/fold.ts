// `reduce(state, event)`: the same fold as the server's, so that the page and the store never
// disagree. It changes the state it is given at a cost that does not grow with the thread, and it
// never throws: whatever an agent sends in whatever order, there is a next state.

import type { Content, Json, ToolContent } from './content'
import { textOf } from './content'
import type * as e from './events'
import type {
  CompactionEntry, Ending, Entry, PeerMessageEntry, PlanEntry, SessionState, Spoken, Subagent, Terminal,
  ToolCall,
} from './state'
import { TERMINAL_TAIL, newTerminal, runningTurn } from './state'

/** What a batch of events changed, for whoever draws it. */
export class Changes {
  readonly entries = new Set<Entry>()
  readonly terminals = new Set<Terminal>()
  appended = false
  facts = false
}

/** How the end of a turn said that it was interrupted before it had a field for that. */
const TOLD_BY_ERROR: ReadonlySet<string | null> = new Set([
  'interrupted: the process that ran the session ended',
  'interrupted: the session was forked in the midst of a turn',
])

export const LAST_USER = 'last user entry'
export const PROMPT = 'last prompt'

export function reduce(state: SessionState, event: e.Event, changes = new Changes()): SessionState {
  if (event.seq) state.last_seq = event.seq
  const last = state.turns.at(-1)
  if (last?.status === 'prompting' && FROM_AGENT.has(event.type)) {
    last.status = 'streaming'
    changes.facts = true
  }
  step(new Step(state, changes), event)
  return state
}

// What shows that the agent is at work on a prompt.
const FROM_AGENT: ReadonlySet<string> = new Set<e.Event['type']>([
  'user_message', 'agent_message', 'agent_thought', 'tool_call', 'plan', 'plan_removed', 'commands',
  'mode', 'config', 'info', 'usage', 'compaction', 'compaction_summary', 'subagent', 'peer_message',
  'peer_message_chunk', 'unknown',
])

function step(on: Step, event: e.Event): void {
  switch (event.type) {
    case 'user_message': return on.userMessage(event)
    case 'agent_message': return on.speak(event, 'agent')
    case 'agent_thought': return on.speak(event, 'thought')
    case 'tool_call': return on.toolCall(event)
    case 'plan': return on.plan(event)
    case 'plan_removed': return on.planRemoved(event)
    case 'compaction': return on.compaction(event)
    case 'compaction_summary': return on.compactionSummary(event)
    case 'peer_message': return on.peerMessage(event)
    case 'peer_message_chunk': return on.peerMessageChunk(event)
    case 'terminal_output': return on.terminalOutput(event)
    case 'terminal_started': return on.terminalStarted(event)
    case 'terminal_exited': return on.terminalExited(event)
    case 'terminal_released': return on.terminalReleased(event)
    default: return on.fact(event)
  }
}

type Message = e.UserMessage | e.AgentMessage | e.AgentThought
type Rest = Exclude<e.Event, Message | e.ToolCallUpdated | e.PlanUpdated | e.PlanRemoved
  | e.CompactionUpdated | e.CompactionSummary | e.PeerMessageUpdated | e.PeerMessageChunk
  | e.TerminalOutput | e.TerminalStarted | e.TerminalExited | e.TerminalReleased>
type Indexed = ToolCall | PlanEntry | CompactionEntry | PeerMessageEntry
type New<T extends Entry> = T extends Entry ? Omit<T, 'seq' | 'at' | 'turn_id' | 'version'> : never

class Step {
  constructor(
    private readonly state: SessionState,
    private readonly changes: Changes,
  ) {}

  // ── the session, its turns and its facts ─────────────────────────────────────────────────────

  fact(event: Rest): void {
    const { state } = this
    this.changes.facts = true
    switch (event.type) {
      case 'session_opened': return this.opened(event)
      case 'session_closed': state.open = false; return
      case 'turn_started': return this.turnStarted(event)
      case 'turn_cancelling': return this.turnCancelling(event)
      case 'turn_ended': return this.turnEnded(event)
      case 'commands': state.commands = event.commands; return
      case 'mode': return this.mode(event)
      case 'config': state.config_options = event.options; return
      case 'info':
        if (event.title !== undefined) state.title = event.title
        if (event.updated_at !== undefined) state.updated_at = event.updated_at
        return
      case 'usage': return this.usage(event)
      case 'notice': return this.notice(event)
      case 'unknown': this.append(event, { type: 'unknown', kind: event.kind, raw: event.raw }); return
      case 'subagent': return this.subagent(event)
      case 'activity':
        if (event.activity !== undefined) state.activity = event.activity
        if (event.background !== undefined) state.background = event.background
        return
      case 'permission_requested': return this.permission(event)
      case 'elicitation_requested': return this.elicitation(event)
      case 'permission_settled':
      case 'elicitation_settled': return this.settled(event.request_id)
      case 'prompt_queued': return this.queued(event)
      case 'prompt_unqueued': state.queue = state.queue.filter((p) => p.id !== event.queue_id); return
      case 'access':
      case 'file_written':
      case 'file_reverted': return
    }
  }

  private opened(event: e.SessionOpened): void {
    const { state } = this
    state.session_id = event.session_id
    state.agent = event.agent ?? ''
    state.cwd = event.cwd
    state.additional_directories = event.additional_directories ?? []
    state.continuity = event.continuity
    state.open = true
    state.activity = 'idle'
    state.background = []
    this.stopSubagents()
    if (event.continuity === 'reset') this.append(event, { type: 'reset' })
  }

  private turnStarted(event: e.TurnStarted): void {
    const { state } = this
    state.turns.push({ id: event.turn_id, status: 'prompting', stop_reason: null, usage: null, error: null })
    state.places.set(PROMPT, state.entries.length)
    const pieces = event.content.map(pieceOf)
    this.append(event, { type: 'user', pieces, message_id: null, until: event.at ?? 0 })
  }

  private turnCancelling(event: e.TurnCancelling): void {
    const turn = runningTurn(this.state)
    if (turn?.id !== event.turn_id) return
    turn.status = 'cancelling'
    this.cancelToolCalls(turn.id)
  }

  private turnEnded(event: e.TurnEnded): void {
    const turn = runningTurn(this.state)
    if (turn === null || turn.id !== event.turn_id) return
    const error = event.error ?? null
    if (error !== null) this.append(event, { type: 'error', message: error })
    const cancelled = turn.status === 'cancelling' || event.stop_reason === 'cancelled'
    if (cancelled || error !== null) {
      this.cancelToolCalls(turn.id)
      this.cancelCompactions(turn.id)
      this.stopSubagents()
    }
    this.settleThought(-1)
    turn.status = endingOf(event, cancelled)
    turn.stop_reason = event.stop_reason ?? null
    turn.usage = event.usage ?? null
    turn.error = error
  }

  private cancelToolCalls(turnId: string): void {
    for (const entry of this.tail(turnId)) {
      if (entry.type === 'tool_call' && (entry.status === 'pending' || entry.status === 'in_progress')) this.cancelled(entry)
    }
  }

  private cancelCompactions(turnId: string): void {
    for (const entry of this.tail(turnId)) {
      if (entry.type === 'compaction' && entry.status === 'in_progress') this.cancelled(entry)
    }
  }

  private cancelled(entry: ToolCall | CompactionEntry): void {
    entry.status = 'cancelled'
    this.changed(entry)
  }

  /** Only the running turn's is walked: older turns ended with their own. */
  private *tail(turnId: string): Generator<Entry> {
    const { entries } = this.state
    for (let at = entries.length - 1; at >= 0; at--) {
      const entry = entries[at]
      if (entry === undefined || entry.turn_id !== turnId) return
      yield entry
    }
  }

  /** But for those that the agent says run on. */
  private stopSubagents(): void {
    const { subagents, background } = this.state
    const runningOn = background.map((work) => work.sessionId)
    for (const child of subagents.values()) {
      const doing = child.state?.state
      const atWork = doing === 'running' || doing === 'requires_action'
      if (atWork && !runningOn.includes(child.session_id)) child.state = { state: 'idle', stopReason: 'cancelled' }
    }
  }

  private mode(event: e.ModeChanged): void {
    const { state } = this
    const known = state.modes
    if (event.available != null) state.modes = { current: event.mode_id, available: event.available }
    else if (known === null) state.modes = { current: event.mode_id, available: [] }
    else state.modes = { ...known, current: event.mode_id }
  }

  private usage({ used, size, cost }: e.UsageChanged): void {
    this.state.usage = cost == null ? { used, size } : { used, size, cost }
  }

  private notice(event: e.Notice): void {
    this.append(event, {
      type: 'notice',
      title: event.title,
      severity: event.severity ?? 'info',
      description: event.description ?? null,
      source: event.source ?? 'agent',
    })
  }

  private subagent(event: e.SubagentUpdated): void {
    const { subagents } = this.state
    const child: Subagent = subagents.get(event.session_id) ?? {
      session_id: event.session_id, title: null, description: null, state: null, cwd: null,
      additional_directories: null, capabilities: null, seq: event.seq ?? 0, at: event.at ?? 0,
    }
    if (event.title !== undefined) child.title = event.title
    if (event.description !== undefined) child.description = event.description
    if (event.state !== undefined) child.state = event.state
    if (event.cwd !== undefined) child.cwd = event.cwd
    if (event.additional_directories !== undefined) child.additional_directories = event.additional_directories
    if (event.capabilities !== undefined) child.capabilities = event.capabilities
    subagents.set(event.session_id, child)
  }

  // ── what waits for an answer ─────────────────────────────────────────────────────────────────

  private permission(event: e.PermissionRequested): void {
    this.state.pending.set(event.request_id, {
      kind: 'permission',
      id: event.request_id,
      options: event.options,
      title: event.title ?? '',
      tool_call_id: event.tool_call_id ?? null,
      operation: event.operation ?? 'other',
      paths: event.paths ?? [],
      argv: event.argv ?? null,
      content: event.content ?? [],
      description: event.description ?? null,
      explanation: event.explanation ?? null,
      claimed: event.claimed ?? false,
      cwd: event.cwd ?? null,
    })
    this.askedAbout(event.tool_call_id)
    this.turnWaits()
  }

  private elicitation(event: e.ElicitationRequested): void {
    this.state.pending.set(event.request_id, {
      kind: 'elicitation',
      id: event.request_id,
      message: event.message,
      mode: event.mode,
      schema: event.schema ?? null,
      url: event.url ?? null,
      elicitation_id: event.elicitation_id ?? null,
      tool_call_id: event.tool_call_id ?? null,
    })
    this.turnWaits()
  }

  private settled(id: string): void {
    this.askedAbout(this.state.pending.get(id)?.tool_call_id)
    this.state.pending.delete(id)
    this.turnWaits()
  }

  /** A tool call looks different while someone is asked about it. */
  private askedAbout(id: string | null | undefined): void {
    const entry = this.state.entries[this.state.places.get(`tool:${id}`) ?? -1]
    if (entry !== undefined) this.changed(entry)
  }

  private turnWaits(): void {
    const turn = runningTurn(this.state)
    if (turn !== null && turn.status !== 'cancelling') {
      turn.status = this.state.pending.size ? 'waiting' : 'streaming'
    }
  }

  private queued(event: e.PromptQueued): void {
    const { state } = this
    const known = state.queue.some((prompt) => prompt.id === event.queue_id)
    const prompt = { id: event.queue_id, content: event.content }
    state.queue = known
      ? state.queue.map((p) => (p.id === prompt.id ? prompt : p))
      : [...state.queue, prompt]
  }

  // ── messages ─────────────────────────────────────────────────────────────────────────────────

  userMessage(event: e.UserMessage): void {
    if (!this.echoesPrompt(event)) this.speak(event, 'user')
  }

  /** Some agents tell us the prompt we just sent; it stands in the thread already. */
  private echoesPrompt(event: e.UserMessage): boolean {
    if (event.replay || runningTurn(this.state) === null || !this.promptIsLast()) return false
    const prompt = this.state.entries.at(-1)
    if (prompt?.type !== 'user') return false
    const piece = pieceOf(event.content)
    if (prompt.pieces.some((known) => same(known, piece))) return true
    const text = textOf(event.content)
    return text !== '' && text === prompt.pieces.map((p) => (typeof p === 'string' ? p : textOf(p))).join('')
  }

  private promptIsLast(): boolean {
    return this.state.places.get(PROMPT) === this.state.entries.length - 1
  }

  /** Add to the message it belongs to: by its id, else to the last entry of the same kind. */
  speak(event: Message, kind: Spoken['type']): void {
    const piece = pieceOf(event.content)
    const known = event.replaces ? this.begunBefore(event, kind) : null
    if (known !== null) {
      known.pieces = []
      this.changed(known)
    }
    if (piece === '') return
    const begun = this.begun(event, kind)
    if (begun !== null) return this.add(begun, piece, event)
    const { state } = this
    const id = event.message_id ?? null
    if (id !== null) state.places.set(`${kind}:${id}`, state.entries.length)
    this.append(event, { type: kind, pieces: [piece], message_id: id, until: event.at ?? 0 })
  }

  private add(entry: Spoken, piece: string | Content, event: Message): void {
    const last = entry.pieces.length - 1
    const before = entry.pieces[last]
    if (typeof piece === 'string' && typeof before === 'string') entry.pieces[last] = before + piece
    else entry.pieces.push(piece)
    entry.until = event.at ?? entry.until
    this.changed(entry)
  }

  private begun(event: Message, kind: Spoken['type']): Spoken | null {
    const { state } = this
    const last = state.entries.at(-1)
    if (last?.type === kind && this.sameMessage(last, event)) return last
    return this.begunBefore(event, kind)
  }

  private begunBefore(event: Message, kind: Spoken['type']): Spoken | null {
    const { state } = this
    if (event.message_id == null) return null
    const place = state.places.get(`${kind}:${event.message_id}`)
    const entry = place === undefined ? undefined : state.entries[place]
    return entry?.type === kind ? entry : null
  }

  private sameMessage(last: Spoken, event: Message): boolean {
    if (last.message_id !== (event.message_id ?? null)) return false
    if (last.type === 'user' && this.promptIsLast()) return false
    // Without ids, a new turn still begins a new message.
    return event.replay === true || last.turn_id === (runningTurn(this.state)?.id ?? null)
  }

  // ── tool calls, plans and the rest of the thread ─────────────────────────────────────────────

  toolCall(event: e.ToolCallUpdated): void {
    const call = this.indexed<ToolCall>(event, `tool:${event.tool_call_id}`, {
      type: 'tool_call', id: event.tool_call_id, title: '', name: null, kind: 'other',
      status: 'pending', content: [], locations: [], raw_input: null, raw_output: null, meta: null,
      cancellable: false,
    })
    if (event.title !== undefined) call.title = event.title ?? ''
    if (event.name !== undefined) call.name = event.name
    if (event.kind !== undefined) call.kind = event.kind || 'other'
    if (event.status !== undefined) call.status = event.status || 'pending'
    if (event.content !== undefined) call.content = event.content ?? []
    for (const item of event.more ?? []) {
      const kept = isUnread(item) ? call.content.filter((known) => !isUnread(known)) : call.content
      call.content = [...kept, item]
    }
    if (event.locations !== undefined) call.locations = event.locations ?? []
    if (event.raw_input !== undefined) call.raw_input = event.raw_input
    if (event.raw_output !== undefined) call.raw_output = event.raw_output
    if (event.cancellable !== undefined) call.cancellable = event.cancellable
    if (event.forgets_meta) call.meta = null
    if (event.meta != null) call.meta = withMeta(call.meta, event.meta)
    this.changed(call)
  }

  plan(event: e.PlanUpdated): void {
    const id = event.plan_id ?? ''
    // A plan without an id is replaced in place until the user speaks again.
    const key = id ? `plan:${id}` : `steps:after ${this.state.places.get(LAST_USER) ?? 0}`
    const plan = this.indexed<PlanEntry>(event, key, {
      type: 'plan', plan_id: id, steps: [], markdown: null, uri: null,
    })
    plan.steps = event.steps ?? []
    plan.markdown = event.markdown ?? null
    plan.uri = event.uri ?? null
    this.changes.facts = true
    this.changed(plan)
  }

  planRemoved(event: e.PlanRemoved): void {
    const key = `plan:${event.plan_id}`
    const place = this.state.places.get(key)
    this.state.places.delete(key)
    const plan = place === undefined ? undefined : this.state.entries[place]
    if (plan?.type !== 'plan') return
    plan.steps = []
    plan.markdown = plan.uri = null
    this.changes.facts = true
    this.changed(plan)
  }

  compaction(event: e.CompactionUpdated): void {
    const entry = this.compacting(event)
    entry.status = event.status
    if (event.summary !== undefined) entry.summary = [...(event.summary ?? [])]
    if (event.error !== undefined) entry.error = event.error
  }

  compactionSummary(event: e.CompactionSummary): void {
    this.compacting(event).summary.push(event.content)
  }

  private compacting(event: e.CompactionUpdated | e.CompactionSummary): CompactionEntry {
    const id = event.compaction_id
    const entry = this.indexed<CompactionEntry>(event, `compaction:${id}`, {
      type: 'compaction', id, status: 'in_progress', summary: [], error: null,
    })
    this.changed(entry)
    return entry
  }

  peerMessage(event: e.PeerMessageUpdated): void {
    const entry = this.peer(event)
    if (event.sender_session_id !== undefined) entry.sender_session_id = event.sender_session_id
    if (event.recipient_session_id !== undefined) entry.recipient_session_id = event.recipient_session_id
    if (event.sender_message_id !== undefined) entry.sender_message_id = event.sender_message_id
    if (event.recipient_message_id !== undefined) entry.recipient_message_id = event.recipient_message_id
    if (event.content !== undefined) entry.content = [...(event.content ?? [])]
  }

  peerMessageChunk(event: e.PeerMessageChunk): void {
    this.peer(event).content.push(event.content)
  }

  private peer(event: e.PeerMessageUpdated | e.PeerMessageChunk): PeerMessageEntry {
    const id = event.message_id
    const entry = this.indexed<PeerMessageEntry>(event, `peer:${id}`, {
      type: 'peer_message', id, content: [], sender_session_id: null, recipient_session_id: null,
      sender_message_id: null, recipient_message_id: null,
    })
    this.changed(entry)
    return entry
  }

  // ── terminals ────────────────────────────────────────────────────────────────────────────────

  terminalStarted(event: e.TerminalStarted): void {
    const terminal = this.terminal(event.terminal_id)
    terminal.argv = event.argv
    terminal.cwd = event.cwd ?? ''
    terminal.command = event.command ?? ''
    terminal.cancellable = event.cancellable ?? false
    terminal.running = true
    terminal.exit_code = terminal.signal = null
  }

  terminalOutput(event: e.TerminalOutput): void {
    const terminal = this.terminal(event.terminal_id)
    if (event.replaces) {
      // As if all before were cut off, so that whoever has drawn it begins anew.
      terminal.dropped += terminal.output.length + 1
      terminal.output = ''
    }
    terminal.output += event.data
    // Trimmed when twice too long, so that the copying is paid for by what was printed.
    if (terminal.output.length > 2 * TERMINAL_TAIL) {
      terminal.dropped += terminal.output.length - TERMINAL_TAIL
      terminal.output = terminal.output.slice(-TERMINAL_TAIL)
    }
  }

  terminalExited(event: e.TerminalExited): void {
    const terminal = this.terminal(event.terminal_id)
    terminal.running = terminal.cancellable = false
    terminal.exit_code = event.exit_code ?? null
    terminal.signal = event.signal ?? null
  }

  terminalReleased(event: e.TerminalReleased): void {
    this.terminal(event.terminal_id).released = true
  }

  private terminal(id: string): Terminal {
    let terminal = this.state.terminals.get(id)
    if (terminal === undefined) {
      terminal = newTerminal(id)
      this.state.terminals.set(id, terminal)
      this.changes.facts = true
    }
    terminal.version++
    this.changes.terminals.add(terminal)
    return terminal
  }

  // ── entries ──────────────────────────────────────────────────────────────────────────────────

  /** A thought looks different once it is over. */
  private settleThought(at: number): void {
    const entry = this.state.entries.at(at)
    if (entry?.type === 'thought') this.changed(entry)
  }

  private changed(entry: Entry): void {
    entry.version++
    this.changes.entries.add(entry)
  }

  private append<T extends Entry>(event: e.Event, fields: New<T>): T {
    const { state } = this
    const turn = event.replay ? null : runningTurn(state)
    const stamp = { seq: event.seq ?? 0, at: event.at ?? 0, turn_id: turn?.id ?? null, version: 0 }
    const entry = { ...fields, ...stamp } as unknown as T
    if (entry.type === 'user') state.places.set(LAST_USER, state.entries.length)
    state.entries.push(entry)
    this.changes.appended = true
    this.settleThought(-2)
    return entry
  }

  /** The entry with this id, made on first sight whatever comes first. */
  private indexed<T extends Indexed>(event: e.Event, key: string, fields: New<T>): T {
    const { state } = this
    const place = state.places.get(key)
    const known = place === undefined ? undefined : state.entries[place]
    if (known !== undefined && known.type === (fields as { type: string }).type) return known as T
    state.places.set(key, state.entries.length)
    return this.append<T>(event, fields)
  }
}

/** Stands for a whole update of which something could not be read; a tool call shows the last one. */
const isUnread = (item: ToolContent) => item.type === 'unknown' && item.kind === 'unread'

/** A key that is null goes. */
function withMeta(known: Json | null, more: Json): Json {
  return Object.fromEntries(Object.entries({ ...known, ...more }).filter(([key, value]) => value !== null || !(key in more)))
}

function pieceOf(content: Content): string | Content {
  const plain = content.type === 'text' && content.annotations == null && content.meta == null
  return plain ? content.text : content
}

function same(left: unknown, right: unknown): boolean {
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  const [a, b] = [left as Json, right as Json]
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  return [...keys].every((key) => same(a[key], b[key]))
}

function endingOf(event: e.TurnEnded, cancelled: boolean): Ending {
  const error = event.error ?? null
  if (event.interrupted || TOLD_BY_ERROR.has(error)) return 'interrupted'
  if (error !== null) return 'failed'
  return cancelled ? 'cancelled' : 'completed'
}

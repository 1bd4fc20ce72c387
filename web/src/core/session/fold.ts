// `reduce(state, event)`: the same fold as the server's, so that the page and the store never
// disagree. It changes the state it is given at a cost that does not grow with the thread, and it
// never throws: whatever an agent sends in whatever order, there is a next state, within the limits.

import { cutTo, fitted, fitting, limitsOfSubagent, weigh } from './state_limits'
import { EntrySteps, type Message } from './entry_steps'
import type * as e from '../generated/events'
import { FROM_AGENT } from '../generated/events'
import type { ProgramRun } from '../generated/facts'
import { ID, LIMITS, WORD, type Limits } from '../generated/limits'
import {
  OPEN_STATUSES, newNoticeEntry, newPendingElicitation, newPendingPermission, newQueuedPrompt, newTurnState,
  newUserEntry,
} from '../generated/state'
import { entryCount, newSubagent, newTerminal, placed, runningTurn, subagentAtWork } from './state'
import type {
  CompactionEntry, Ending, ErrorEntry, NoticeEntry, SessionState, Spoken, Subagent, Terminal, ToolCall,
  UnknownEntry,
} from './state'
import { Changes, PROMPT } from './thread'

/** How the end of a turn said that it was interrupted before it had a field for that. */
const TOLD_BY_ERROR: ReadonlySet<string | null> = new Set([
  'interrupted: the process that ran the session ended',
  'interrupted: the session was forked in the midst of a turn',
])

/** What a subagent can tell; what it asks for is recorded with the session. */
const TOLD_BY_SUBAGENTS: ReadonlySet<e.Event['type']> = new Set<e.Event['type']>([
  'user_message', 'agent_message', 'agent_thought', 'tool_call', 'plan', 'plan_removed', 'commands', 'mode', 'config', 'info',
  'usage', 'notice', 'compaction', 'compaction_summary', 'peer_message', 'peer_message_chunk', 'activity', 'unknown',
  'terminal_started', 'terminal_output', 'terminal_exited',
])

export function reduce(
  state: SessionState, event: e.Event, changes = new Changes(), limits: Limits = LIMITS,
): SessionState {
  if (event.seq) state.lastSeq = event.seq
  const last = state.turns.at(-1)
  if (last?.status === 'prompting' && FROM_AGENT.has(event.type)) {
    last.status = 'streaming'
    changes.facts = true
  }
  step(new Step(state, changes, limits), event)
  return state
}

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
    case 'subagent_event': return on.subagentEvent(event)
    default: return on.fact(event)
  }
}

type Rest = Exclude<e.Event, Message | e.ToolCallUpdated | e.PlanUpdated | e.PlanRemoved
  | e.CompactionUpdated | e.CompactionSummary | e.PeerMessageUpdated | e.PeerMessageChunk
  | e.TerminalOutput | e.TerminalStarted | e.TerminalExited | e.TerminalReleased | e.SubagentEvent>

class Step extends EntrySteps {
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
      case 'commands': state.commands = this.facts(event.commands); return
      case 'mode': return this.mode(event)
      case 'config': state.configOptions = this.facts(event.options); return
      case 'info':
        if (event.title !== undefined) state.title = this.line(event.title)
        if (event.updatedAt !== undefined) state.updatedAt = this.line(event.updatedAt)
        return
      case 'usage': return this.usage(event)
      case 'notice':
      case 'limit_reached': return this.notice(event)
      case 'turn_limited':
        this.notice(event)
        state.parked = event.parked ?? null
        return
      case 'parking_changed': return this.parkingChanged(event)
      case 'unknown': return this.unknown(event)
      case 'subagent': return this.subagent(event)
      case 'activity':
        if (event.activity !== undefined) state.activity = cutTo(event.activity, WORD)
        if (event.background !== undefined) state.background = fitted(event.background, this.limits.facts).kept
        return
      case 'permission_requested': return this.permission(event)
      case 'elicitation_requested': return this.elicitation(event)
      case 'permission_settled':
      case 'elicitation_settled': return this.settled(event.requestId)
      case 'prompt_queued': return this.queued(event)
      case 'prompt_unqueued': state.queue = state.queue.filter((p) => p.id !== event.queueId); return
      case 'steered': return this.steered(event)
      case 'workspace_snapshot': return this.snapshot(event)
      case 'programs_ran': return this.programsRan(event)
      case 'access':
      case 'file_written':
      case 'file_reverted': return
    }
  }

  private snapshot(event: e.WorkspaceSnapshot): void {
    const { files, doubt, ...rest } = event
    const kept = this.facts(files ?? [])
    this.state.snapshot = {
      ...rest,
      stepId: cutTo(event.stepId, ID),
      roots: this.facts(event.roots),
      ...(kept.length > 0 && { files: kept }),
      ...(doubt && { doubt: cutTo(doubt, this.limits.line) }),
    }
  }

  private programsRan(event: e.ProgramsRan): void {
    const { state, limits } = this
    for (const end of event.ended ?? []) {
      const id = cutTo(end.id, ID)
      // The last of several by one id, as in the fold in Python.
      for (let at = state.programs.length - 1; at >= 0; at--) {
        const known = state.programs[at]!
        if (known.id !== id) continue
        const { exitCode: _code, signal: _signal, ...rest } = known
        state.programs[at] = {
          ...rest,
          ...(end.exitCode != null && { exitCode: end.exitCode }),
          ...(end.signal != null && { signal: cutTo(end.signal, limits.line) }),
        }
        break
      }
    }
    const programs = [...state.programs, ...(event.programs ?? []).map((each) => this.program(each))]
    const more = Math.max(0, programs.length - limits.programs)
    for (const each of programs.slice(0, more)) state.programsBefore += each.count ?? 1
    state.programs = programs.slice(more)
    state.programsBefore += event.leftOut ?? 0
  }

  private program({ meta: _meta, ...program }: ProgramRun): ProgramRun {
    const { limits } = this
    return {
      ...program,
      id: cutTo(program.id, ID),
      argv: program.argv.slice(0, limits.words).map((word) => cutTo(word, limits.line)),
      ...(program.cwd && { cwd: cutTo(program.cwd, limits.line) }),
      ...(program.parents?.length && {
        parents: program.parents.slice(0, limits.words).map((name) => cutTo(name, WORD)),
      }),
      ...(program.signal != null && { signal: cutTo(program.signal, limits.line) }),
      ...(program.refused != null && { refused: cutTo(program.refused, limits.line) }),
    }
  }

  private opened(event: e.SessionOpened): void {
    const { state } = this
    state.sessionId = event.sessionId
    state.agent = event.agent ?? ''
    state.cwd = event.cwd
    state.additionalDirectories = event.additionalDirectories ?? []
    state.continuity = event.continuity
    state.fence = event.fence ?? null
    state.network = event.network ?? null
    state.open = true
    state.activity = 'idle'
    state.background = []
    this.stopSubagents()
    if (event.continuity === 'reset') this.append(event, { type: 'reset' })
  }

  private turnStarted(event: e.TurnStarted): void {
    const { state } = this
    const { turns } = state
    turns.push({ ...newTurnState(), id: event.turnId, seq: event.seq ?? 0 })
    if (turns.length > this.limits.turns) turns.splice(0, Math.floor(turns.length / 4) || 1)
    state.places.set(PROMPT, entryCount(state))
    const prompt = this.append<Spoken>(event, { ...newUserEntry(), until: event.at ?? 0 })
    for (const part of event.content) this.addWhole(prompt, part)
  }

  private turnCancelling(event: e.TurnCancelling): void {
    const turn = runningTurn(this.state)
    if (turn?.id !== event.turnId) return
    turn.status = 'cancelling'
    this.cancelToolCalls(turn.id)
  }

  private turnEnded(event: e.TurnEnded): void {
    const turn = runningTurn(this.state)
    if (turn === null || turn.id !== event.turnId) return
    const error = event.error ?? null
    if (error !== null) this.put(this.append<ErrorEntry>(event, { type: 'error', message: '' }), 'message', error)
    const cancelled = turn.status === 'cancelling' || event.stopReason === 'cancelled'
    if (cancelled || error !== null) {
      this.cancelToolCalls(turn.id)
      this.cancelCompactions(turn.id)
      this.stopSubagents()
    }
    this.settleThought(-1)
    turn.status = endingOf(event, cancelled)
    turn.stopReason = this.line(event.stopReason ?? null)
    turn.usage = event.usage ?? null
    if (turn.usage !== null && weigh(turn.usage) > this.limits.fact) {
      const { meta: _, ...counts } = turn.usage
      turn.usage = counts
    }
    turn.error = this.line(error)
  }

  private cancelToolCalls(turnId: string): void {
    for (const entry of this.tail(turnId)) {
      if (entry.type === 'tool_call' && OPEN_STATUSES.has(entry.status)) this.cancelled(entry)
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

  /** Except those that the agent reports as still running. */
  private stopSubagents(): void {
    const { subagents, background } = this.state
    const runningOn = background.map((work) => work.sessionId)
    for (const child of subagents.values()) {
      if (!subagentAtWork(child) || runningOn.includes(child.sessionId)) continue
      child.state = { state: 'idle', stopReason: 'cancelled' }
      for (const entry of child.thread.entries) {
        if ((entry.type === 'tool_call' || entry.type === 'compaction') && OPEN_STATUSES.has(entry.status)) this.cancelled(entry)
      }
      this.changedSubagent(child)
    }
  }

  private mode(event: e.ModeChanged): void {
    const { state } = this
    const known = state.modes
    const current = cutTo(event.modeId, ID)
    if (event.available != null) state.modes = { current, available: this.facts(event.available) }
    else if (known === null) state.modes = { current, available: [] }
    else state.modes = { ...known, current }
  }

  private usage({ used, size, cost }: e.UsageChanged): void {
    const usage = cost == null ? { used, size } : { used, size, cost }
    this.state.usage = weigh(usage) <= this.limits.fact ? usage : { used, size }
  }

  private parkingChanged(event: e.ParkingChanged): void {
    this.notice(event)
    const { parked } = this.state
    if (parked == null || parked.id !== event.parkingId) return
    const { resumesAt: _before, isDoubted: _doubted, ...rest } = parked
    // What waits for a person is not in doubt: the person decides.
    const waiting = event.resumesAt == null ? rest : { ...parked, resumesAt: event.resumesAt }
    this.state.parked = event.outcome === 'waiting' ? waiting : null
  }

  private notice(event: e.Notice | e.LimitReached | e.TurnLimited | e.ParkingChanged): void {
    const fields = { ...newNoticeEntry(), title: '' }
    if (event.severity !== undefined) fields.severity = cutTo(event.severity, WORD)
    if (event.source !== undefined) fields.source = event.source
    const notice = this.append<NoticeEntry>(event, fields)
    this.put(notice, 'title', event.title)
    this.put(notice, 'description', event.description ?? null)
  }

  private unknown(event: e.UnknownUpdate): void {
    const entry = this.append<UnknownEntry>(event, { type: 'unknown', kind: cutTo(event.kind, WORD), raw: '' })
    this.put(entry, 'raw', event.raw)
  }

  private subagent(event: e.SubagentUpdated): void {
    const child = this.child(event.sessionId, event)
    const room = Math.floor(this.limits.fact / 16)
    if (event.title !== undefined) child.title = fitted(event.title, room).kept
    if (event.description !== undefined) child.description = fitted(event.description, room).kept
    if (event.state !== undefined) child.state = fitted(event.state, room).kept
    if (event.cwd !== undefined) child.cwd = fitted(event.cwd, room).kept
    if (event.additionalDirectories !== undefined) child.additionalDirectories = fitted(event.additionalDirectories, room).kept
    if (event.capabilities !== undefined) child.capabilities = fitted(event.capabilities, room).kept
    if (event.toolCallId != null) child.toolCallId = cutTo(event.toolCallId, ID)
    this.changedSubagent(child)
  }

  /** The subagent with this id, made on first sight; who started it does not change. */
  private child(sessionId: string, event: e.SubagentUpdated | e.SubagentEvent): Subagent {
    const { subagents } = this.state
    const id = cutTo(sessionId, ID)
    const known = subagents.get(id)
    if (known !== undefined) return known
    if (subagents.size >= this.limits.others) {
      const all = [...subagents.values()]
      const oldest = all.find((each) => !subagentAtWork(each)) ?? all[0]
      this.state.subagentsSize -= oldest?.thread.size ?? 0
      subagents.delete(oldest?.sessionId ?? '')
    }
    const child: Subagent = { ...newSubagent(id), seq: event.seq ?? 0, at: event.at ?? 0 }
    if (event.type === 'subagent' && event.parent != null) child.parent = cutTo(event.parent, ID)
    subagents.set(id, child)
    this.changes.facts = true
    return child
  }

  /** A step of the subagent's own thread. */
  subagentEvent(event: e.SubagentEvent): void {
    const told = event.event
    if (!TOLD_BY_SUBAGENTS.has(told.type)) return
    const child = this.child(event.sessionId, event)
    const { thread } = child
    const before = thread.size
    const { seq = 0, at = 0, replay = false } = event
    const changes = new Changes(this.changes)
    reduce(thread, { ...told, seq, at, replay }, changes, limitsOfSubagent(this.limits))
    this.state.subagentsSize += thread.size - before
    if (told.type === 'activity' && told.activity !== undefined && child.state?.state !== thread.activity) {
      child.state = { state: thread.activity }
    }
    this.changedSubagent(child)
    this.shareRoom(child)
  }

  private changedSubagent(child: Subagent): void {
    child.version++
    this.changes.subagents.add(child)
  }

  /** The entries of other subagents go when all have too many, of those first that are idle. */
  private shareRoom(speaking: Subagent): void {
    const { state, limits } = this
    if (state.subagentsSize <= limits.thread) return
    const all = [...state.subagents.values()]
    for (const child of [...all.filter((each) => !subagentAtWork(each)), ...all.filter(subagentAtWork)]) {
      if (state.subagentsSize <= Math.floor(limits.thread / 2)) return
      if (child === speaking) continue
      const { thread } = child
      state.subagentsSize -= thread.size
      thread.entriesBefore = entryCount(thread)
      thread.entries = []
      thread.places.clear()
      thread.size = 0
      this.changedSubagent(child)
    }
  }

  // ── what waits for an answer ─────────────────────────────────────────────────────────────────

  private permission(event: e.PermissionRequested): void {
    const { type: _, seq: _seq, at: _at, replay: _replay, meta: _meta, requestId: id, description, ...asked } = event
    const content = fitting(asked.content ?? [], this.limits.entry).kept
    const always = asked.always ?? description ?? null
    this.state.pending.set(id, { ...newPendingPermission(), ...asked, id, always, content })
    this.askedAbout(event.toolCallId)
    this.turnWaits()
  }

  private elicitation(event: e.ElicitationRequested): void {
    const { type: _, seq: _seq, at: _at, replay: _replay, meta: _meta, requestId: id, ...asked } = event
    this.state.pending.set(id, { ...newPendingElicitation(), ...asked, id })
    this.turnWaits()
  }

  private settled(id: string): void {
    this.askedAbout(this.state.pending.get(id)?.toolCallId)
    this.state.pending.delete(id)
    this.turnWaits()
  }

  /** A tool call looks different while someone is asked about it. */
  private askedAbout(id: string | null | undefined): void {
    const entry = id == null ? undefined : placed(this.state, `tool:${cutTo(id, ID)}`)
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
    const { queueId: id, content, terms, steer = null } = event
    if (state.queue.some((prompt) => prompt.id === id)) {
      state.queue = state.queue.map((p) => (p.id === id ? { ...p, content, steer } : p))
      return
    }
    const others = state.queue.findIndex((prompt) => prompt.steer === null)
    const place = steer === null || others < 0 ? state.queue.length : others
    const prompt = { ...newQueuedPrompt(), id, content, steer, ...(terms && { terms }) }
    state.queue = [...state.queue.slice(0, place), prompt, ...state.queue.slice(place)]
  }

  private steered(event: e.Steered): void {
    const { state } = this
    const { queueId: id, outcome, content = [] } = event
    if (outcome === 'queued') {
      state.queue = state.queue.map((p) => (p.id === id ? { ...p, steer: 'waiting' } : p))
      return
    }
    state.queue = state.queue.filter((p) => p.id !== id)
    if (content.length === 0) return
    state.places.set(PROMPT, entryCount(state))
    const entry = this.append<Extract<Spoken, { type: 'user' }>>(event, { ...newUserEntry(), steer: outcome, until: event.at ?? 0 })
    for (const part of content) this.addWhole(entry, part)
    this.put(entry, 'reason', event.reason ?? '')
  }

  // ── terminals ────────────────────────────────────────────────────────────────────────────────

  terminalStarted(event: e.TerminalStarted): void {
    const terminal = this.terminal(event.terminalId)
    const room = Math.floor(this.limits.fact / 8)
    terminal.argv = fitted(event.argv, room).kept
    terminal.cwd = fitted(event.cwd ?? '', room).kept
    terminal.command = fitted(event.command ?? '', room).kept
    terminal.cancellable = event.cancellable ?? false
    terminal.running = true
    terminal.exitCode = terminal.signal = null
  }

  terminalOutput(event: e.TerminalOutput): void {
    const terminal = this.terminal(event.terminalId)
    if (event.replaces) {
      // As if all output before were cut off, so that a screen that has drawn it starts over.
      terminal.dropped++
      this.trim(terminal, 0)
    }
    terminal.output += event.data
    this.state.printed += event.data.length
    // Trimmed when twice too long, so that the copying is paid for by what was printed.
    if (terminal.output.length > 2 * this.limits.tail) this.trim(terminal, this.limits.tail)
    if (this.state.printed > this.limits.tails) this.trimOthers(terminal)
  }

  private trim(terminal: Terminal, length: number): void {
    const over = terminal.output.length - length
    if (over <= 0) return
    terminal.dropped += over
    terminal.output = terminal.output.slice(over)
    this.state.printed -= over
  }

  /** Those that have ended first, the oldest of them first. */
  private trimOthers(printing: Terminal): void {
    const all = [...this.state.terminals.values()]
    for (const terminal of [...all.filter((t) => !t.running), ...all.filter((t) => t.running)]) {
      if (this.state.printed <= this.limits.tails / 2) return
      if (terminal !== printing) this.trim(terminal, this.limits.line)
    }
  }

  terminalExited(event: e.TerminalExited): void {
    const terminal = this.terminal(event.terminalId)
    terminal.running = terminal.cancellable = false
    terminal.exitCode = event.exitCode ?? null
    terminal.signal = event.signal == null ? null : cutTo(event.signal, WORD)
  }

  terminalReleased(event: e.TerminalReleased): void {
    this.terminal(event.terminalId).released = true
  }

  private terminal(told: string): Terminal {
    const id = cutTo(told, ID)
    let terminal = this.state.terminals.get(id)
    if (terminal === undefined) {
      this.makeRoom()
      terminal = newTerminal(id)
      this.state.terminals.set(id, terminal)
      this.changes.facts = true
    }
    terminal.version++
    this.changes.terminals.add(terminal)
    return terminal
  }

  private makeRoom(): void {
    const { terminals } = this.state
    if (terminals.size < this.limits.others) return
    const all = [...terminals.values()]
    // One that we run is the last to go: at most so many of those run at a time.
    const kept = (terminal: Terminal) => (terminal.running ? 2 : 0) + (terminal.argv.length ? 1 : 0)
    const oldest = all.reduce((first, next) => (kept(next) < kept(first) ? next : first), all[0] as Terminal)
    if (oldest === undefined) return
    this.trim(oldest, 0)
    terminals.delete(oldest.id)
  }
}

function endingOf(event: e.TurnEnded, cancelled: boolean): Ending {
  const error = event.error ?? null
  if (event.interrupted || TOLD_BY_ERROR.has(error)) return 'interrupted'
  if (error !== null) return 'failed'
  return cancelled ? 'cancelled' : 'completed'
}

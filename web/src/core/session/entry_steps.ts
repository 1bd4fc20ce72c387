// The steps of the fold that make entries of a thread: messages, tool calls, plans, compactions and
// messages between sessions. The rest is in `fold`.

import { cutTo, fitted, fitting, points, weigh } from './state_limits'
import { textOf } from './content'
import type { Content, Json, ToolContent } from '../generated/content'
import type * as e from '../generated/events'
import { ID, NODE, WORD } from '../generated/limits'
import { NEW_ENTRIES, newCompactionEntry, newPeerMessageEntry, newPlanEntry, newToolCall } from '../generated/state'
import { entryCount, placed, runningTurn } from './state'
import type { CompactionEntry, PeerMessageEntry, PlanEntry, Spoken, ToolCall } from './state'
import { LAST_USER, PROMPT, STEPS, Thread, isEmpty, member, weightOf } from './thread'

export type Message = e.UserMessage | e.AgentMessage | e.AgentThought

export class EntrySteps extends Thread {
  // ── messages ─────────────────────────────────────────────────────────────────────────────────

  userMessage(event: e.UserMessage): void {
    if (this.echoesPrompt(event)) return
    const before = entryCount(this.state)
    this.speak(event, 'user')
    const entry = this.state.entries.at(-1)
    if (entryCount(this.state) > before && entry?.type === 'user') entry.reported = !event.replay
  }

  /** Some agents echo the prompt we just sent; it is in the thread already. */
  private echoesPrompt(event: e.UserMessage): boolean {
    if (event.replay || runningTurn(this.state) === null || !this.promptIsLast()) return false
    const prompt = this.state.entries.at(-1)
    if (prompt?.type !== 'user') return false
    const piece = pieceOf(event.content)
    if (prompt.cut > 0 && typeof piece === 'string') return piece !== '' && piece.startsWith(wordsOf(prompt))
    if (prompt.pieces.some((known) => same(known, piece))) return true
    const text = textOf(event.content)
    return text !== '' && text === wordsOf(prompt)
  }

  private promptIsLast(): boolean {
    return this.state.places.get(PROMPT) === entryCount(this.state) - 1
  }

  /** Add to the message it belongs to: by its id, else to the last entry of the same kind. */
  speak(event: Message, kind: Spoken['type']): void {
    const piece = pieceOf(event.content)
    const known = event.replaces ? this.begunBefore(event, kind) : null
    if (known !== null) this.clear(known)
    if (piece === '') return
    const { state } = this
    const last = state.entries.at(-1)
    if (last?.type === kind && this.sameMessage(last, event)) return this.add(last, piece, event)
    const before = this.begunBefore(event, kind)
    if (before !== null) {
      this.add(before, piece, event)
      return this.forget()
    }
    const id = event.messageId == null ? null : cutTo(event.messageId, ID)
    if (id !== null) state.places.set(`${kind}:${id}`, entryCount(state))
    const size = id === null ? 0 : 2 * points(id)
    const entry = this.append<Spoken>(event, { ...NEW_ENTRIES[kind](), messageId: id, until: event.at ?? 0 }, size)
    this.add(entry, piece, event)
  }

  private clear(entry: Spoken): void {
    this.grow(entry, 2 * points(entry.messageId ?? '') - entry.size)
    entry.pieces = []
    entry.cut = 0
    this.changed(entry)
  }

  private add(entry: Spoken, piece: string | Content, event: Message): void {
    if (typeof piece === 'string') this.say(entry, piece)
    else this.addWhole(entry, piece)
    entry.until = event.at ?? entry.until
    this.changed(entry)
  }

  private say(entry: Spoken, text: string): void {
    const length = points(text)
    const room = Math.min(length, Math.max(0, this.limits.entry - entry.size))
    entry.cut += length - room
    this.grow(entry, room)
    if (room === 0) return
    const words = room < length ? cutTo(text, room) : text
    const last = entry.pieces.length - 1
    const before = entry.pieces[last]
    if (typeof before === 'string') entry.pieces[last] = before + words
    else entry.pieces.push(words)
  }

  protected addWhole(entry: Spoken, part: Content): void {
    const { kept, weight, cut } = fitting([part], this.limits.entry - entry.size)
    entry.pieces.push(...kept.map(pieceOf))
    this.grow(entry, weight)
    entry.cut += cut
  }

  private begunBefore(event: Message, kind: Spoken['type']): Spoken | null {
    if (event.messageId == null) return null
    const entry = placed(this.state, `${kind}:${cutTo(event.messageId, ID)}`)
    return entry?.type === kind ? entry : null
  }

  private sameMessage(last: Spoken, event: Message): boolean {
    const id = event.messageId == null ? null : cutTo(event.messageId, ID)
    if (last.messageId !== id) return false
    if (last.type === 'user' && this.promptIsLast()) return false
    // Without ids, a new turn still begins a new message.
    return event.replay === true || last.turnId === (runningTurn(this.state)?.id ?? null)
  }

  // ── tool calls, plans and the rest of the thread ─────────────────────────────────────────────

  toolCall(event: e.ToolCallUpdated): void {
    const id = cutTo(event.toolCallId, ID)
    const call = this.indexed<ToolCall>(event, `tool:${id}`, { ...newToolCall(), id })
    if (event.title !== undefined) this.put(call, 'title', event.title ?? '')
    if (event.kind !== undefined) call.kind = cutTo(event.kind || 'other', WORD)
    if (event.status !== undefined) call.status = cutTo(event.status || 'pending', WORD)
    if (event.content !== undefined) this.putItems(call, 'content', event.content ?? [])
    for (const item of event.more ?? []) this.more(call, item)
    if (event.locations !== undefined) this.putItems(call, 'locations', event.locations ?? [])
    if (event.name !== undefined) this.put(call, 'name', event.name)
    if (event.rawInput !== undefined) this.put(call, 'rawInput', event.rawInput)
    if (event.rawOutput !== undefined) this.put(call, 'rawOutput', event.rawOutput)
    if (event.cancellable !== undefined) call.cancellable = event.cancellable
    if (event.forgetsMeta) this.put(call, 'meta', null)
    if (event.meta != null) this.putMeta(call, event.meta)
    this.changed(call)
    this.forget()
  }

  private more(call: ToolCall, item: ToolContent): void {
    const last = isUnread(item) ? call.content.slice(-1).filter(isUnread) : []
    this.grow(call, -weightOf(last))
    const { kept, weight, cut } = fitting([item], this.limits.entry - call.size)
    call.content = [...call.content.slice(0, call.content.length - last.length), ...kept]
    this.grow(call, weight)
    call.cut += cut
  }

  /** A key that is null goes. */
  private putMeta(call: ToolCall, more: Json): void {
    const { kept, weight } = fitted(more, this.limits.entry - call.size)
    if (kept !== more) call.cut += weigh(more) - weight
    const merged: Json = { ...call.meta }
    if (isEmpty(call.meta)) this.grow(call, NODE)
    for (const [key, value] of Object.entries(kept)) {
      if (key in merged) this.grow(call, -member(key, merged[key]))
      if (value === null) delete merged[key]
      else {
        merged[key] = value
        this.grow(call, member(key, value))
      }
    }
    if (isEmpty(merged)) this.grow(call, -NODE)
    call.meta = merged
  }

  plan(event: e.PlanUpdated): void {
    const { places } = this.state
    const id = cutTo(event.planId ?? '', ID)
    const key = id ? `plan:${id}` : STEPS
    // A plan without an id is replaced in place until the user speaks again.
    if (!id && (places.get(key) ?? -1) < (places.get(LAST_USER) ?? -1)) places.delete(key)
    const plan = this.indexed<PlanEntry>(event, key, { ...newPlanEntry(), planId: id })
    this.putItems(plan, 'steps', event.steps ?? [])
    this.put(plan, 'markdown', event.markdown ?? null)
    this.put(plan, 'uri', event.uri ?? null)
    this.changes.facts = true
    this.changed(plan)
    this.forget()
  }

  planRemoved(event: e.PlanRemoved): void {
    const key = `plan:${cutTo(event.planId, ID)}`
    const plan = placed(this.state, key)
    this.state.places.delete(key)
    if (plan?.type !== 'plan') return
    this.putItems(plan, 'steps', [])
    this.put(plan, 'markdown', null)
    this.put(plan, 'uri', null)
    this.changes.facts = true
    this.changed(plan)
  }

  compaction(event: e.CompactionUpdated): void {
    const entry = this.compacting(event)
    entry.status = cutTo(event.status, WORD)
    if (event.summary !== undefined) this.putItems(entry, 'summary', event.summary ?? [])
    if (event.error !== undefined) this.put(entry, 'error', event.error)
    this.forget()
  }

  compactionSummary(event: e.CompactionSummary): void {
    const entry = this.compacting(event)
    this.addItem(entry, entry.summary, event.content)
    this.forget()
  }

  private compacting(event: e.CompactionUpdated | e.CompactionSummary): CompactionEntry {
    const id = cutTo(event.compactionId, ID)
    const entry = this.indexed<CompactionEntry>(event, `compaction:${id}`, { ...newCompactionEntry(), id })
    this.changed(entry)
    return entry
  }

  peerMessage(event: e.PeerMessageUpdated): void {
    const entry = this.peer(event)
    if (event.senderSessionId !== undefined) this.put(entry, 'senderSessionId', event.senderSessionId)
    if (event.recipientSessionId !== undefined) this.put(entry, 'recipientSessionId', event.recipientSessionId)
    if (event.senderMessageId !== undefined) this.put(entry, 'senderMessageId', event.senderMessageId)
    if (event.recipientMessageId !== undefined) this.put(entry, 'recipientMessageId', event.recipientMessageId)
    if (event.content !== undefined) this.putItems(entry, 'content', event.content ?? [])
    this.forget()
  }

  peerMessageChunk(event: e.PeerMessageChunk): void {
    const entry = this.peer(event)
    this.addItem(entry, entry.content, event.content)
    this.forget()
  }

  private peer(event: e.PeerMessageUpdated | e.PeerMessageChunk): PeerMessageEntry {
    const id = cutTo(event.messageId, ID)
    const entry = this.indexed<PeerMessageEntry>(event, `peer:${id}`, { ...newPeerMessageEntry(), id })
    this.changed(entry)
    return entry
  }
}

function wordsOf(entry: Spoken): string {
  return entry.pieces.map((p) => (typeof p === 'string' ? p : textOf(p))).join('')
}

/** Stands for a whole update of which something could not be read; of several in a row a tool call shows the last. */
const isUnread = (item: ToolContent) => item.type === 'unknown' && item.kind === 'unread'

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

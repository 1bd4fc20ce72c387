// What is marked on the bar of a replay: turns, questions, edits and costs, each at its event.

import type { Event } from '../generated/events'
import { baseName, money } from '../text/format'

export type MarkKind = 'turn' | 'question' | 'edit' | 'cost' | 'failed'

/** `at` is how many events there are up to and with this one. */
export interface Mark { at: number; kind: MarkKind; words: string }

const MOST = 400

/** In their order. Of very many, turns and questions stay, and as many of the others as have room. */
export function marksOf(events: readonly Event[]): Mark[] {
  const marks: Mark[] = []
  const edits = new Set<string>()
  let paid = 0
  events.forEach((event, index) => {
    const at = index + 1
    if (event.type === 'usage' && event.cost != null && event.cost.amount > paid) {
      paid = event.cost.amount
      marks.push({ at, kind: 'cost', words: `${money(paid, event.cost.currency)} so far` })
    } else {
      const mark = markOf(event)
      // A call that edits a file is reported several times.
      const call = event.type === 'tool_call' && mark !== null ? event.toolCallId : ''
      if (mark !== null && !edits.has(call)) marks.push({ at, ...mark })
      if (call !== '') edits.add(call)
    }
  })
  return thinned(marks)
}

function markOf(event: Event): Omit<Mark, 'at'> | null {
  switch (event.type) {
    case 'turn_started': return { kind: 'turn', words: `Turn: ${textOf(event.content).slice(0, 80) || 'no text'}` }
    case 'turn_ended': return event.error == null ? null : { kind: 'failed', words: 'The turn failed' }
    case 'permission_requested': return { kind: 'question', words: `Asked: ${(event.title || event.operation || '').slice(0, 80)}` }
    case 'elicitation_requested': return { kind: 'question', words: `Asked: ${event.message.slice(0, 80)}` }
    case 'file_written': return { kind: 'edit', words: `Wrote ${baseName(event.path)}` }
    case 'tool_call': return edited(event)
    default: return null
  }
}

function edited({ content }: Extract<Event, { type: 'tool_call' }>): Omit<Mark, 'at'> | null {
  const diff = Array.isArray(content) ? content.find((part) => part.type === 'diff') : undefined
  return diff?.type === 'diff' ? { kind: 'edit', words: `Edited ${baseName(diff.path)}` } : null
}

function textOf(content: readonly { type: string; text?: string }[]): string {
  return content.map((part) => (part.type === 'text' ? part.text ?? '' : '')).join(' ').trim()
}

function thinned(marks: Mark[]): Mark[] {
  if (marks.length <= MOST) return marks
  const kept = marks.filter(({ kind }) => kind === 'turn' || kind === 'question' || kind === 'failed')
  const rest = marks.filter((mark) => !kept.includes(mark))
  const step = Math.ceil(rest.length / Math.max(1, MOST - kept.length))
  return [...kept, ...rest.filter((_, index) => index % step === 0)].sort((a, b) => a.at - b.at)
}

/** The mark before or after a position, of one kind or of any; null where there is none. */
export function nextMark(marks: readonly Mark[], at: number, step: 1 | -1, kind?: MarkKind): Mark | null {
  const fitting = marks.filter((mark) => (kind === undefined || mark.kind === kind) && (step > 0 ? mark.at > at : mark.at < at))
  return (step > 0 ? fitting[0] : fitting.at(-1)) ?? null
}

/** The turn that a position is in, or the one before it: its files are those of that moment. */
export function turnAt(events: readonly Event[], at: number): string | null {
  for (let index = Math.min(at, events.length) - 1; index >= 0; index--) {
    const event = events[index]
    if (event?.type === 'turn_started') return event.turnId
  }
  return null
}

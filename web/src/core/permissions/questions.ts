// Which of the questions that wait are one question: asked again while the first waits, or asked alike
// by several sessions.

import type { Pending } from '../session/state'
import { within } from '../text/format'
import { commandLine } from '../text/safe_text'

type Questions = ReadonlyMap<string, Pending>

/** Those to answer: the answer to the first of equal ones counts for all. */
export function leading(pending: Questions): Pending[] {
  return [...pending.values()].filter((each) => !isRepetition(each, pending))
}

function isRepetition(each: Pending, pending: Questions): boolean {
  return each.kind === 'permission' && each.sameAs !== null && pending.has(each.sameAs)
}

/** How many times this question waits. */
export function timesAsked(pending: Questions, id: string): number {
  return 1 + [...pending.values()].filter((each) => each.kind === 'permission' && each.sameAs === id).length
}

interface Asked { session: { id: string; agent: string }; pending: Pending }

/** What one answer can settle, in the order of the first of each; what is kept `apart` stands alone. */
export function together<T extends Asked>(waiting: readonly T[], apart: ReadonlySet<string> = new Set()): T[][] {
  const groups = new Map<string, T[]>()
  for (const each of waiting) {
    const own = keyOf(each)
    const key = (apart.has(own) ? null : likeness(each)) ?? own
    groups.set(key, [...groups.get(key) ?? [], each])
  }
  return [...groups.values()]
}

export function keyOf({ session, pending }: Asked): string {
  return JSON.stringify([session.id, pending.id])
}

/** In one line what is asked. */
export function askedBriefly(pending: Pending, cwd: string): string {
  if (pending.kind !== 'permission') return pending.message
  if (pending.argv !== null) return commandLine(pending.argv)
  const [path, ...others] = pending.paths
  if (path === undefined) return pending.title || pending.operation
  const verb = pending.operation === 'write' ? 'Write ' : pending.operation === 'read' ? 'Read ' : ''
  return `${verb}${within(path, cwd)}${others.length > 0 ? ` and ${others.length} more` : ''}`
}

/** The position of a key; if it has gone, that of the one in its place. */
export function nextOf(keys: readonly string[], key: string, before: number): number {
  const at = keys.indexOf(key)
  return at >= 0 ? at : Math.max(0, Math.min(before, keys.length - 1))
}

/** Equal for questions of which a person could not tell one from the other; what names nothing is like nothing. */
function likeness({ session, pending }: Asked): string | null {
  if (pending.kind !== 'permission') return null
  const { id: _, toolCallId: _call, sameAs: _same, ...asked } = pending
  const namesNothing = asked.argv === null && asked.paths.length === 0 && asked.content.length === 0
  return namesNothing ? null : JSON.stringify([session.agent, Object.entries(asked).sort(([a], [b]) => (a < b ? -1 : 1))])
}

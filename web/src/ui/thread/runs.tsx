// A run of reads and searches as one row, until it is opened.

import { useMemo, useReducer, useSyncExternalStore } from 'react'
import { isLook, rowsOf, runWords, type Row } from '../../core/session/rows'
import { isAtWork, type ToolCall } from '../../core/session/state'
import type { Decided } from '../../core/session/turn_records'
import type { LiveSession } from '../../live/session'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'

// It must survive when scrolling removes a row from the page.
const opened = new Set<string>()

export interface Shape { shape: Row[]; toggle: (row: Row) => void }

export function useShape(session: LiveSession, isApart: (at: number) => boolean): Shape {
  const [version, redraw] = useReducer((n: number) => n + 1, 0)
  const { entries } = session.state
  const key = (id: string) => `${session.id}:${id}`
  const made = rowsOf(entries, { isOpen: ({ id }) => opened.has(key(id)), isApart })
  // All rows are laid out again when their keys change: the same shape is the same list.
  const signature = made.length === entries.length ? `${entries.length}` : made.map(({ at, count }) => (count > 1 ? `${at}+${count}` : '')).join('') + made.length
  const shape = useMemo(() => made, [signature, version, session.state, session.first])
  const toggle = ({ at }: Row) => {
    const call = entries[at]
    if (call?.type !== 'tool_call') return
    if (!opened.delete(key(call.id))) opened.add(key(call.id))
    redraw()
  }
  return { shape, toggle }
}

export function keyOfRow(row: Row | undefined, first: number): string | number {
  if (row === undefined) return -1
  return row.count > 1 ? `run ${first + row.at}` : first + row.at
}

/** A person's word, or a refusal: these are not folded away. */
export function isWord({ decision }: Decided): boolean {
  return decision.by === 'person' || decision.effect !== 'allow'
}

interface HeadProps { session: LiveSession; row: Row; toggle: () => void }

export function RunHead({ session, row, toggle }: HeadProps) {
  const calls = session.state.entries.slice(row.at, row.at + row.heads).filter((entry): entry is ToolCall => isLook(entry))
  const last = calls.at(-1)
  useSyncExternalStore((listener) => (last === undefined ? () => undefined : session.watch(last, listener)), () => last?.version)
  const open = row.count === 1
  const running = last !== undefined && last.status !== 'completed' && isAtWork(session.state)
  return (
    <button type="button" className="runhead" data-fold="" aria-expanded={open} onClick={toggle}>
      <Icon name="chevron" className={open ? 'turned' : ''} /> {running ? <Spinner /> : <Icon name="read" />}
      <span>{runWords(calls)}</span>{running && <span className="quiet"><Plain text={last.title || last.name || ''} /></span>}
    </button>
  )
}

// A long text to decide on: both ends are visible at once, the middle after a click. Nothing scrolls
// inside, where an end could be overlooked.

import { useState, type ReactNode } from 'react'
import { bothEnds, excerpt, isEmpty, leftWords, type Left, type Part } from '../../core/excerpt'
import { Plain } from './plain_text'

const FIRST = 14
const LAST = 8
const MORE = 1000

/** Which rows are drawn, and how to have more of them. */
export function useEnds<T>(rows: readonly T[], emptiness: (row: T) => string | null): { parts: Part<T>[]; more: () => void } {
  const [first, setFirst] = useState(FIRST)
  return { parts: excerpt(rows, first, LAST, emptiness), more: () => setFirst(first + MORE) }
}

/** The row that replaces the omitted ones. */
export function LeftRow({ left, more }: { left: Left; more: () => void }) {
  if (left.empty) return <span className="left">{leftWords(left)}</span>
  const all = left.lines <= MORE
  return <button type="button" className="left" onClick={more}>{leftWords(left)}: show {all ? 'all' : `${MORE} more`}</button>
}

/** Lines of text; `line` draws one. */
export function TextEnds({ text, label, className, line = (words) => <Plain text={words} lines /> }: { text: string; label: string; className: string; line?: (words: string) => ReactNode }) {
  const lines = text.split('\n')
  const { parts, more } = useEnds(lines, (each) => (isEmpty(each) ? '' : null))
  const [whole, setWhole] = useState(false)
  const cut = !whole && lines.some((each) => bothEnds(each) !== bothEnds(each, true))
  return (
    <div className={`ends ${className}`} role="group" aria-label={label}>
      {parts.map((part, at) => 'left' in part
        ? <LeftRow key={at} left={part.left} more={more} />
        : <div key={at} className="textline">{line(bothEnds(part.row, whole))}</div>)}
      {cut && <button type="button" className="left" onClick={() => setWhole(true)}>Show long lines in full</button>}
    </div>
  )
}

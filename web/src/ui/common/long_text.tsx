// A long text to decide on: both ends are visible at once, the middle after a click.

import { useState, type ReactNode } from 'react'
import { bothEnds, excerpt, isEmpty, leftWords, type Left, type Part } from '../../core/text/excerpt'
import { Plain } from './plain_text'

/** How many rows of the beginning and of the end fit, with the answers below. */
const ROOMY = [10, 6] as const
const NARROW = [5, 4] as const
const MORE = 1000

/** Which rows are drawn, and how to have more of them. */
export function useEnds<T>(rows: readonly T[], emptiness: (row: T) => string | null): { parts: Part<T>[]; more: () => void } {
  const [[beginning, last]] = useState(() => (window.matchMedia('(max-width: 767px), (max-height: 700px)').matches ? NARROW : ROOMY))
  const [more, setMore] = useState(0)
  return { parts: excerpt(rows, beginning + more, last, emptiness), more: () => setMore(more + MORE) }
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

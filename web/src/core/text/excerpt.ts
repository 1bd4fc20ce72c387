// Shortens long text to both ends: a person who decides must see how it ends. The omitted lines are in
// the middle, and are counted. The same as `cli/render/event_text.py`; golden vectors compare them.

import { EMPTY_RUN, LINE_END, LINE_START, LONG_LINE } from '../generated/limits'

/** So many rows that are not shown; empty ones have nothing to show but their mark. */
export interface Left { lines: number; empty: boolean; mark: string }

export type Part<T> = { row: T } | { left: Left }

/** The first and the last rows, runs of empty ones as one. `emptiness` is the mark of an empty row. */
export function excerpt<T>(rows: readonly T[], first: number, last: number, emptiness: (row: T) => string | null): Part<T>[] {
  const parts = withoutRuns(rows, emptiness)
  if (parts.length <= first + last + 1) return parts
  const middle = parts.slice(first, parts.length - last)
  const lines = middle.reduce((sum, part) => sum + ('left' in part ? part.left.lines : 1), 0)
  return [...parts.slice(0, first), { left: { lines, empty: false, mark: '' } }, ...parts.slice(parts.length - last)]
}

function withoutRuns<T>(rows: readonly T[], emptiness: (row: T) => string | null): Part<T>[] {
  const parts: Part<T>[] = []
  for (let at = 0; at < rows.length;) {
    const mark = emptiness(rows[at] as T)
    let end = at + 1
    while (mark !== null && end < rows.length && emptiness(rows[end] as T) === mark) end++
    if (mark !== null && end - at >= EMPTY_RUN) parts.push({ left: { lines: end - at, empty: true, mark } })
    else for (const row of rows.slice(at, end)) parts.push({ row })
    at = end
  }
  return parts
}

export function isEmpty(text: string): boolean {
  return /^[ \t\r]*$/.test(text)
}

/** A line with long runs of blanks as a count and, unless `whole`, without the middle of a very long line. */
export function bothEnds(told: string, whole = false): string {
  const line = told.replace(/[ \t]{100,}/g, (run) => `⟨${run.length} blanks⟩`)
  if (whole || line.length <= LONG_LINE) return line
  const chars = [...line]
  if (chars.length <= LONG_LINE) return line
  const between = chars.length - LINE_START - LINE_END
  return `${chars.slice(0, LINE_START).join('')} ⟨${between} characters omitted⟩ ${chars.slice(-LINE_END).join('')}`
}

/** What is not shown, in words. */
export function leftWords({ lines, empty, mark }: Left): string {
  if (!empty) return `${lines} lines omitted`
  return `${lines} empty lines${mark === '+' ? ' added' : mark === '-' ? ' removed' : ''}`
}

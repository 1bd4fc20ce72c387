// The hunks of a changed file as rows to draw, unified or side by side, and where a comment belongs in them.

import type { Diff } from '../generated/content'
import type { Author } from '../generated/facts'
import type { FileChange } from '../generated/responses'
import { diffRows, type DiffRow } from './diff'
import type { ReviewComment } from './review'

export interface ReviewHunk {
  /** The server's name for it; null if it cannot be put back by itself. */
  id: string | null
  /** The same for as long as the same lines are changed. */
  key: string
  rows: DiffRow[]
  by: Author[]
  added: number
  removed: number
  /** The changed lines as they are now; where they only went, those around them. */
  start: number
  end: number
}

const known = new WeakMap<FileChange, ReviewHunk[]>()

export function hunksOf(change: FileChange): ReviewHunk[] {
  const before = known.get(change)
  if (before !== undefined) return before
  const hunks = change.hunks.length ? change.hunks.map((hunk) => hunkOf(change.path, hunk.id, rowsOf(hunk), hunk.by ?? change.by)) : compared(change)
  known.set(change, hunks)
  return hunks
}

function rowsOf({ oldStart, newStart, lines }: { oldStart: number; newStart: number; lines: string[] }): DiffRow[] {
  let [old, now] = [oldStart, newStart]
  return lines.map((line): DiffRow => {
    const [sign, text] = [line[0], line.slice(1)]
    if (sign === '+') return { sign, text, old: null, new: now++ }
    if (sign === '-') return { sign, text, old: old++, new: null }
    if (sign === ' ') return { sign, text, old: old++, new: now++ }
    return { sign: '@', text: line.replace(/^\\ ?/, ''), old: null, new: null }
  })
}

/** Without hunks of the server, both texts are compared here. */
function compared(change: FileChange): ReviewHunk[] {
  if (change.before === null && change.after === null) return []
  const diff: Diff = { type: 'diff', path: change.path, oldText: change.existed ? change.before ?? '' : null, newText: change.after ?? '' }
  const parts: DiffRow[][] = []
  for (const row of diffRows(diff, true).rows) {
    if (row.sign === '@' || parts.length === 0) parts.push([])
    if (row.sign !== '@' || /^\D/.test(row.text.replace(/^line /, ''))) parts.at(-1)?.push(row)
  }
  return parts.filter((rows) => rows.length > 0).map((rows) => hunkOf(change.path, null, rows, change.by))
}

function hunkOf(path: string, id: string | null, rows: DiffRow[], by: Author[]): ReviewHunk {
  const added = rows.filter(({ sign }) => sign === '+')
  const removed = rows.filter(({ sign }) => sign === '-')
  const near = (added.length ? added : rows).flatMap((row) => row.new ?? [])
  const changed = [...removed, ...added].map(({ sign, text }) => sign + text)
  const key = digest(`${path}\n${changed.join('\n')}`)
  return { id, key, rows, by, added: added.length, removed: removed.length, start: near[0] ?? 0, end: near.at(-1) ?? 0 }
}

/** Lines of a diff that are said in words. */
const SAID = /^(rename (from|to) |(old|new) mode |(New|Deleted) (empty file|folder)$|Binary files )/

/** Whether its diff has more to say than the hunks and what is said of a file in words, such as why there are none. */
export function saysMore({ diff }: FileChange): boolean {
  return diff.split('\n').some((line) => line !== '' && !SAID.test(line))
}

/** What a person has looked at when they mark the file as viewed: after another change it no longer is. */
export function fingerprint(change: FileChange): string {
  const { status, oldPath, oldMode, newMode, oldSize, newSize, added, removed, turns } = change
  const content = change.binary || change.hunks.length === 0 ? [oldSize, newSize, turns, change.diff] : hunksOf(change).map(({ key }) => key)
  return digest(JSON.stringify([status, oldPath, oldMode, newMode, added, removed, content]))
}

/** Two numbers of 32 bits: it has to tell versions of one file apart, and nobody gains by a clash. */
function digest(text: string): string {
  let [one, two] = [0x811c9dc5, 0x1b873593]
  for (let at = 0; at < text.length; at++) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193)
    two = Math.imul(two ^ text.charCodeAt(at), 0x85ebca6b) ^ (two >>> 13)
  }
  return `${(one >>> 0).toString(36)}-${(two >>> 0).toString(36)}-${text.length.toString(36)}`
}

// ── side by side ─────────────────────────────────────────────────────────────────────────────

export interface Pair { left: DiffRow | null; right: DiffRow | null }

/** What was removed is next to what was added in its place. */
export function pairs(rows: readonly DiffRow[]): Pair[] {
  const found: Pair[] = []
  let removed: DiffRow[] = []
  let added: DiffRow[] = []
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) found.push({ left: removed[at] ?? null, right: added[at] ?? null })
    removed = []
    added = []
  }
  for (const row of rows) {
    if (row.sign === '-') {
      if (added.length) flush()
      removed.push(row)
    } else if (row.sign === '+') added.push(row)
    else {
      flush()
      found.push({ left: row, right: row })
    }
  }
  flush()
  return found
}

/** In lines that replace each other one by one, the part that differs: from, to. */
export function emphasised(rows: readonly DiffRow[]): Map<DiffRow, [number, number]> {
  const marks = new Map<DiffRow, [number, number]>()
  for (const { left, right } of pairs(rows)) {
    if (left === null || right === null || left === right) continue
    const shorter = Math.min(left.text.length, right.text.length)
    let first = 0
    while (first < shorter && left.text[first] === right.text[first]) first++
    let last = 0
    while (last < shorter - first && left.text.at(-1 - last) === right.text.at(-1 - last)) last++
    // Lines that have little in common are different lines.
    if (first + last < shorter / 3 || left.text.trim() === '' || right.text.trim() === '') continue
    marks.set(left, [first, left.text.length - last])
    marks.set(right, [first, right.text.length - last])
  }
  return marks
}

// ── comments ─────────────────────────────────────────────────────────────────────────────────

export type Place = Required<Pick<ReviewComment, 'side' | 'start' | 'end' | 'lines'>>

/** What a comment on these rows is about. */
export function placeOf(rows: readonly DiffRow[]): Place {
  const told = rows.filter(({ sign }) => sign !== '@')
  const side = told.some((row) => row.new !== null) ? 'new' : 'old'
  const numbers = told.flatMap((row) => row[side] ?? [])
  return { side, start: numbers[0] ?? 0, end: numbers.at(-1) ?? 0, lines: told.map(({ sign, text }) => sign + text) }
}

/** The rows from one to another of the same hunk. */
export function rowsBetween(rows: readonly DiffRow[], one: DiffRow, other: DiffRow): DiffRow[] {
  const [a, b] = [placeOfRow(rows, one), placeOfRow(rows, other)]
  return a < 0 || b < 0 ? [other] : rows.slice(Math.min(a, b), Math.max(a, b) + 1)
}

/** By its line numbers: the rows are made again whenever the changes are read again. */
function placeOfRow(rows: readonly DiffRow[], row: DiffRow): number {
  return rows.findIndex((each) => each.old === row.old && each.new === row.new)
}

/** The rows that were changed, from the first to the last. */
export function changedRows({ rows }: ReviewHunk): DiffRow[] {
  const changed = rows.filter(({ sign }) => sign === '+' || sign === '-')
  const [first, last] = [changed[0], changed.at(-1)]
  return first && last ? rowsBetween(rows, first, last) : [...rows]
}

export interface Anchor {
  /** The code is no longer there: the comment keeps the lines it was written on. */
  stale: boolean
  start: number
  end: number
  /** Below which it is drawn; without it, at the top of the file. */
  row: DiffRow | null
}

/** Where the code of a comment is now. It is looked for by its text, next to where it was. */
export function anchorOf(place: Place, hunks: readonly ReviewHunk[], after: string | null): Anchor {
  if (place.start === 0) return { stale: false, start: 0, end: 0, row: null }
  const { side } = place
  const wanted = place.lines.filter((line) => !line.startsWith(side === 'new' ? '-' : '+')).map((line) => line.slice(1))
  let best: Anchor | null = null
  const offer = (start: number, row: DiffRow | null) => {
    if (best === null || Math.abs(start - place.start) < Math.abs(best.start - place.start)) best = { stale: false, start, end: start + wanted.length - 1, row }
  }
  for (const { rows } of hunks) {
    const there = rows.filter((row) => row[side] !== null)
    for (const at of matches(there.map(({ text }) => text), wanted)) offer(there[at]?.[side] ?? 0, there[at + wanted.length - 1] ?? null)
  }
  if (best === null && side === 'new' && after !== null) for (const at of matches(after.split('\n'), wanted)) offer(at + 1, null)
  return best ?? { stale: true, start: place.start, end: place.end, row: null }
}

function matches(lines: readonly string[], wanted: readonly string[]): number[] {
  if (wanted.length === 0) return []
  const found: number[] = []
  for (let at = 0; at + wanted.length <= lines.length; at++) {
    if (wanted.every((text, of) => lines[at + of] === text)) found.push(at)
  }
  return found
}

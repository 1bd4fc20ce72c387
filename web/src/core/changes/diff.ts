// A diff as rows to draw: hunks with a few lines around each change, numbered on both sides.

import { structuredPatch } from 'diff'
import type { Diff } from '../generated/content'
import { table } from '../text/format'

export interface DiffRow {
  sign: '+' | '-' | ' ' | '@'
  text: string
  /** Line numbers before and after; null where the line is not. */
  old: number | null
  new: number | null
}

export interface FileDiff {
  path: string
  added: number
  removed: number
  created: boolean
  /** It is known that both texts are the same. */
  unchanged: boolean
  /** What is done to the file, where that is more than a change of its text. */
  note: string
  /** Too large to compare: the rows only count the lines. */
  large: boolean
  /** The same, for there was too much else to compare. */
  postponed: boolean
  rows: DiffRow[]
}

const MAX_CHARS = 2_000_000

const CONTEXT = 3
// Comparing two texts that have little in common takes too long. Many that come at once share that
// limit, and get back a quarter of the time that passes.
const MAX_MS = 300
const SHARE = 0.25
const known = new WeakMap<Diff, FileDiff>()
let left = MAX_MS
let lastLook = 0

/** The rows of a change, worked out once. One that is too large to compare is only counted, and so is
 * one that comes with too many others, until someone has it `asked` for. */
export function diffRows(diff: Diff, asked = false): FileDiff {
  const before = known.get(diff)
  if (before !== undefined && !(asked && before.postponed)) return before
  const begun = performance.now()
  left = Math.min(MAX_MS, left + SHARE * Math.max(0, begun - lastLook))
  const file = compared(diff, asked ? MAX_MS : left)
  lastLook = performance.now()
  left -= lastLook - begun
  known.set(diff, file)
  return file
}

/** For a person who decides: a file too large to compare is shown as all removed and all added. */
export function askedRows(diff: Diff): FileDiff {
  const file = diffRows(diff)
  if (!file.large) return file
  const rows = [...file.rows]
  const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
  linesOf(diff.oldText ?? '').forEach((text, at) => rows.push({ sign: '-', text, old: at + 1, new: null }))
  linesOf(diff.newText).forEach((text, at) => rows.push({ sign: '+', text, old: null, new: at + 1 }))
  return { ...file, rows }
}

function compared(diff: Diff, timeout: number): FileDiff {
  const before = diff.oldText ?? ''
  const after = diff.newText
  const file: FileDiff = { path: diff.path, added: 0, removed: 0, created: diff.oldText == null && diff.replaces == null, unchanged: diff.operation == null && diff.oldText === after, note: '', large: false, postponed: false, rows: [] }
  if (diff.operation != null) return patched(file, diff, diff.operation)
  if (file.unchanged) return file
  if (before.length + after.length > MAX_CHARS) return replaced(file, before, after)
  if (timeout <= 0) return replaced({ ...file, postponed: true }, before, after)
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT, timeout })
  if (patch === undefined) return replaced({ ...file, postponed: timeout < MAX_MS }, before, after)
  for (const hunk of patch.hunks) addHunk(file, hunk)
  return file
}

const NOTES = table<string>({ add: '', modify: '', delete: 'deleted', move: 'moved', copy: 'copied' })

/** Told as what is done to the file, and perhaps as a patch. */
function patched(file: FileDiff, diff: Diff, operation: string): FileDiff {
  file.created = operation === 'add' && diff.replaces == null
  const note = NOTES[operation] ?? operation
  file.note = diff.oldPath != null && diff.oldPath !== diff.path ? `${note} from ${diff.oldPath}` : note
  const hunks = hunksOf(diff.patch ?? '')
  for (const hunk of hunks) addHunk(file, hunk)
  // Text that is not a patch is shown as it came: there is nothing else to judge by.
  if (hunks.length === 0 && diff.patch) file.rows = diff.patch.split('\n').map((text) => ({ sign: ' ', text, old: null, new: null }))
  return file
}

// What only repeats the name of the file, before its first hunk.
const NAMES = /^(?:diff --git |index |--- |\+\+\+ |similarity |rename |copy |$)/

/** The hunks, each with the lines after it that are none of its own: nothing of a patch goes unseen. */
function hunksOf(patch: string): Hunk[] {
  const hunks: Hunk[] = []
  const before: string[] = []
  let inside = false
  let files = 0
  for (const line of patch.split('\n')) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line)
    if (line.startsWith('diff --git ')) files++
    if (head) hunks.push({ oldStart: Number(head[1]), newStart: Number(head[2]), lines: [], others: [] })
    inside = head !== null || (inside && /^[-+ \\]/.test(line))
    if (head) continue
    if (!inside) (hunks.at(-1)?.others ?? before).push(line)
    else if (/^[-+ ]/.test(line)) hunks.at(-1)?.lines.push(line)
  }
  const unseen = files > 1 ? before : before.filter((line) => !NAMES.test(line))
  if (unseen.length && hunks[0]) hunks.unshift({ oldStart: 0, newStart: 0, lines: [], others: unseen })
  return hunks
}

interface Hunk { oldStart: number; newStart: number; lines: string[]; others?: string[] }

function addHunk(file: FileDiff, hunk: Hunk): void {
  let [old, now] = [hunk.oldStart, hunk.newStart]
  const others = (hunk.others ?? []).filter((line) => line !== '')
  if (hunk.lines.length && (file.rows.length || old > 1)) {
    file.rows.push({ sign: '@', text: `line ${now}`, old: null, new: null })
  }
  for (const line of hunk.lines) {
    const [sign, text] = [line[0], line.slice(1)]
    if (sign === '+') { file.rows.push({ sign, text, old: null, new: now++ }); file.added++ }
    else if (sign === '-') { file.rows.push({ sign, text, old: old++, new: null }); file.removed++ }
    else if (sign === ' ') file.rows.push({ sign, text, old: old++, new: now++ })
  }
  for (const text of others) file.rows.push({ sign: ' ', text, old: null, new: null })
}

function replaced(file: FileDiff, before: string, after: string): FileDiff {
  const [gone, come] = [before.split('\n'), after.split('\n')]
  const why = file.postponed ? 'not compared yet' : 'too large to compare'
  const note = `${why}: ${gone.length} lines before, ${come.length} after`
  return { ...file, added: come.length, removed: gone.length, large: true, rows: [{ sign: '@', text: note, old: null, new: null }] }
}

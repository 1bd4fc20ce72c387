// The rows of a thread: one for each entry, but a run of reads and searches is one row until it is opened. Pure.

import type { Entry, ToolCall } from './state'

/** The entry it begins with, and how many a closed row stands for; one that heads an open run has `heads`. */
export interface Row { at: number; count: number; heads: number }

const FEWEST = 3

/** What was only looked at: nothing was changed, and nothing went wrong. */
export function isLook(entry: Entry | undefined): entry is ToolCall {
  return entry?.type === 'tool_call' && (entry.kind === 'read' || entry.kind === 'search') && entry.status !== 'failed'
    && entry.content.every((item) => item.type === 'content')
}

interface Asked {
  isOpen: (first: ToolCall) => boolean
  /** What has to stand by itself: something is shown below it, or it is part of another. */
  isApart: (at: number) => boolean
}

export function rowsOf(entries: readonly Entry[], { isOpen, isApart }: Asked): Row[] {
  const rows: Row[] = []
  for (let at = 0; at < entries.length;) {
    let end = at
    while (isLook(entries[end]) && entries[end]?.turnId === entries[at]?.turnId && !isApart(end)) end++
    const first = entries[at]
    const run = end - at
    if (run < FEWEST || !isLook(first)) {
      end = Math.max(end, at + 1)
      for (; at < end; at++) rows.push({ at, count: 1, heads: 0 })
    } else if (!isOpen(first)) {
      rows.push({ at, count: run, heads: run })
      at = end
    } else {
      rows.push({ at, count: 1, heads: run })
      for (at++; at < end; at++) rows.push({ at, count: 1, heads: 0 })
    }
  }
  return rows
}

/** Which row has an entry. */
export function rowOf(rows: readonly Row[], entry: number): number {
  let [low, high] = [0, rows.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((rows[middle]?.at ?? 0) <= entry) low = middle
    else high = middle - 1
  }
  return Math.max(0, low)
}

/** Such as "Read 12 files, 3 searches". */
export function runWords(calls: readonly ToolCall[]): string {
  const reads = calls.filter(({ kind }) => kind === 'read').length
  const searches = calls.length - reads
  const parts = [reads > 0 ? `read ${reads} ${reads === 1 ? 'file' : 'files'}` : '', searches > 0 ? `${searches} ${searches === 1 ? 'search' : 'searches'}` : '']
  const words = parts.filter(Boolean).join(', ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

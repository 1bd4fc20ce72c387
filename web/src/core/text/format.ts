// Numbers, times and places in few characters.

import { reveal } from './safe_text'

export function clock(seconds: number): string {
  if (!seconds) return ''
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' })
}

export function moment(iso: string | number): string {
  const date = typeof iso === 'number' ? new Date(iso * 1000) : new Date(iso)
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })
}

/** How long ago, in one unit. */
export function ago(iso: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - new Date(iso).getTime()) / 1000)
  if (Number.isNaN(seconds)) return ''
  if (seconds < 45) return 'now'
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h`
  return seconds < 86_400 * 30 ? `${Math.round(seconds / 86_400)} d` : new Date(iso).toLocaleDateString([], { dateStyle: 'medium' })
}

/** The same as part of a sentence. */
export function sinceWords(iso: string, now = Date.now()): string {
  const words = ago(iso, now)
  return /^\d+ (min|h|d)$/.test(words) ? `${words} ago` : words
}

export function duration(seconds: number): string {
  if (seconds < 1) return 'less than 1 s'
  if (seconds < 60) return `${Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function count(value: number): string {
  if (value < 1000) return String(value)
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)}k`
  return `${(value / 1_000_000).toFixed(1)}M`
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`
  return value < 1024 * 1024 ? `${(value / 1024).toFixed(0)} kB` : `${(value / 1024 / 1024).toFixed(1)} MB`
}

// One cost is at most 1e12; this has room for what a thousand sessions cost. One that was recorded before
// costs were bounded may be larger.
const MOST_MONEY = 1e15

export function money(amount: number | null, currency: string): string {
  // The agent says how much it is, and what its money is called.
  if (amount === null || !(Math.abs(amount) <= MOST_MONEY)) return `? ${reveal(currency).slice(0, 12)}`
  if (!/^[A-Z]{3}$/.test(currency)) return `${Number(amount.toFixed(4))} ${reveal(currency).slice(0, 12)}`
  try {
    const digits = amount !== 0 && Math.abs(amount) < 0.1 ? 4 : 2
    return new Intl.NumberFormat([], { style: 'currency', currency, maximumFractionDigits: digits }).format(amount)
  } catch {
    return `${amount} ${currency}`
  }
}

/** The last folder of a path: what people call the project. */
export function baseName(path: string): string {
  return path.replace(/\/+$/, '').split('/').at(-1) || path
}

/** A path as seen from a folder, if it lies in it. */
export function within(path: string, folder: string): string {
  const root = folder.replace(/\/+$/, '') + '/'
  return path.startsWith(root) ? path.slice(root.length) : path
}

/** What Dragoman said in a session: worded for a terminal, where it follows a name. A path stays as it is. */
export function sentence(words: string, folder: string): string {
  const nearby = within(words, folder)
  return nearby === words ? words.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase()) : nearby
}

export function plural(n: number, word: string): string {
  return `${n} ${word}${n === 1 ? '' : 's'}`
}

/** A table of what to call something that others name: it has nothing that every object has. */
export function table<T>(entries: Record<string, T>): Readonly<Partial<Record<string, T>>> {
  return Object.assign(Object.create(null) as Record<string, T>, entries)
}

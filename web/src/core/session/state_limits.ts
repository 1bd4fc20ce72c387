// How much of a session the page keeps: the server's limits, counted the same way. The server has the
// rest.

import type { Content, ToolContent } from '../generated/content'
import { NODE, type Limits } from '../generated/limits'

/** How many characters a text has, as the server counts them: a pair of surrogates is one. */
export function points(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) if (isPair(text, at)) { count--; at++ }
  return count
}

function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
}

/** The first characters of a text, counted so. */
export function cutTo(text: string, length: number): string {
  if (text.length <= length) return text
  let at = 0
  for (let count = 0; count < length && at < text.length; count++) at += isPair(text, at) ? 2 : 1
  return text.slice(0, at)
}

type Plain = Record<string, unknown>

const isObject = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value)

export function weigh(value: unknown): number {
  let total = 0
  const rest: unknown[] = [value]
  while (rest.length) {
    const each = rest.pop()
    total += NODE
    if (typeof each === 'string') total += points(each)
    else if (Array.isArray(each)) for (const item of each as unknown[]) rest.push(item)
    else if (isObject(each)) {
      for (const [key, item] of Object.entries(each)) {
        total += NODE + points(key)
        rest.push(item)
      }
    }
  }
  return total
}

/** A value cut to what has room: the beginning of a text, the first items and keys, each whole unless it is a text. */
export function fitted<T>(value: T, room: number): { kept: T; weight: number } {
  const weight = weigh(value)
  if (weight <= room) return { kept: value, weight }
  if (typeof value === 'string') {
    const cut = cutTo(value, Math.max(0, room - NODE))
    return { kept: cut as T, weight: NODE + points(cut) }
  }
  if (Array.isArray(value)) return fittedList(value as unknown[], room) as { kept: T; weight: number }
  if (isObject(value)) return fittedObject(value, room) as { kept: T; weight: number }
  return { kept: null as T, weight: NODE }
}

function fittedObject(value: Plain, room: number): { kept: Plain; weight: number } {
  const kept: Plain = {}
  let weight = NODE
  for (const [key, item] of Object.entries(value)) {
    const head = NODE + points(key)
    const left = room - weight - head
    if (left < NODE) break
    if (typeof item !== 'string' && weigh(item) > left) continue
    const part = fitted(item, left)
    kept[key] = part.kept
    weight += head + part.weight
  }
  return { kept, weight }
}

function fittedList(value: unknown[], room: number): { kept: unknown[]; weight: number } {
  const kept: unknown[] = []
  let weight = NODE
  for (const item of value) {
    const left = room - weight
    if (left < NODE) break
    if (typeof item !== 'string' && weigh(item) > left) continue
    const part = fitted(item, left)
    kept.push(part.kept)
    weight += part.weight
  }
  return { kept, weight }
}

/** The items that have room, each whole unless it is a text; `weight` is theirs, `cut` that of the rest. */
export function fitting<T>(items: readonly T[], room: number): { kept: T[]; weight: number; cut: number } {
  const kept: T[] = []
  let [weight, all, isFull] = [0, 0, false]
  for (const item of items) {
    const more = weigh(item)
    all += more
    isFull ||= room - weight < NODE
    if (isFull) continue
    const over = Math.max(0, weight + more - room)
    const part = over ? shortened(item, over) : item
    if (part === null) continue
    kept.push(part)
    weight += more - over
  }
  return { kept, weight, cut: all - weight }
}

function shortened<T>(item: T, by: number): T | null {
  const told = item as unknown as Content | ToolContent
  if (told.type === 'content') {
    const content = shortened(told.content, by)
    return content === null ? null : { ...item, content }
  }
  if (told.type !== 'text') return null
  const length = points(told.text)
  return length > by ? { ...item, text: cutTo(told.text, length - by) } : null
}

/** What the thread of one subagent keeps at most, as on the server. */
export function limitsOfSubagent(limits: Limits): Limits {
  const part = (whole: number, parts: number) => Math.floor(whole / parts)
  return {
    ...limits,
    entry: part(limits.entry, 4), thread: part(limits.thread, 4), entries: part(limits.entries, 4),
    facts: part(limits.facts, 256), fact: part(limits.fact, 8), others: 4,
    tail: part(limits.tail, 64), tails: part(limits.tails, 256),
  }
}

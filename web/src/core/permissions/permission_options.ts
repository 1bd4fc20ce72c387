// The answers to a permission request as people see them: in one order, in our words. The kind of an
// answer decides what it does, so people read the kind; the agent's label follows as a remark, with a
// warning if it contradicts the kind. The option is sent back as it came. The same as
// `session/permission_options.py`, from the same tables; golden vectors compare them.

import { cutTo, points } from '../session/state_limits'
import type { PermissionOption } from '../generated/facts'
import {
  ASKING, BLANKS, FOR_A_WHILE, FOR_THE_SESSION, LABEL_END, LABEL_START, LASTING, LONGEST, LOOKALIKES, MAYBE_YES,
  MOST_READ, NO, NOT, ONCE, SAME, SEPARATORS, THE_SESSION, UNCLEAR, UNKNOWN, WORDS, YES,
} from '../generated/permission_words'
import { reveal } from '../text/safe_text'

const ORDER = [...WORDS.keys()]

/** One answer for a person. With `warns` the remark must be read: the label says something else. */
export interface Shown {
  id: string
  kind: string
  words: string
  remark: string
  warns: boolean
  /** What an answer for always leads to, where it is known; null for one that is for once. */
  consequence: string | null
  countsOnce: boolean
}

/** By kind, so that the first is for once where there is one; those of one kind stay as they came. */
export function inOrder(options: readonly PermissionOption[]): PermissionOption[] {
  return [...options].sort((a, b) => placeOf(a) - placeOf(b))
}

function placeOf({ kind }: PermissionOption): number {
  const place = ORDER.indexOf(kind)
  return place < 0 ? ORDER.length : place
}

/** The answers in their order, no two of which read the same. */
export function asShown(options: readonly PermissionOption[]): Shown[] {
  const ordered = inOrder(options)
  const kinds = counted(ordered.map(({ kind }) => kind))
  const names = counted(ordered.map(nameOf))
  const ids = counted(new Map(ordered.map(({ id, kind }) => [JSON.stringify([id, kind]), id])).values())
  return ordered.map((option) => {
    const clear = ids.get(option.id) === 1
    const alone = kinds.get(option.kind) === 1 && WORDS.has(option.kind) && clear
    const warning = warningOf(option, clear)
    return {
      id: option.id,
      kind: option.kind,
      words: clear ? inOurWords(option) : UNCLEAR,
      remark: [calledOf(option, alone, names.get(nameOf(option)) === 1), warning].filter(Boolean).join(', '),
      warns: warning !== '',
      consequence: option.consequence ?? null,
      countsOnce: option.countsOnce ?? false,
    }
  })
}

/** The label of a yes for always is believed where it makes that narrower. */
function inOurWords({ name, kind }: PermissionOption): string {
  const isForSession = kind === 'allow_always' && readings(name).some((words) => THE_SESSION.test(words.join(' ')))
  return isForSession ? FOR_THE_SESSION : WORDS.get(kind) ?? UNKNOWN
}

function nameOf({ kind, name }: PermissionOption): string {
  return JSON.stringify([kind, labelOf(name)])
}

function counted(keys: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** What the agent calls it, where that says more; two of a kind differ in nothing else. */
function calledOf(option: PermissionOption, alone: boolean, byName: boolean): string {
  const { id, name, kind } = option
  const label = labelOf(name)
  if (alone && (saysTheSame(name, kind) || label === inOurWords(option))) return ''
  const called = label ? `the agent calls this “${label}”` : 'the agent gives it no name'
  return byName ? called : `${called}, with the id “${labelOf(id)}”`
}

function warningOf({ name, kind }: PermissionOption, clear: boolean): string {
  if (!clear) return 'but uses its id for another answer too: what it does is up to the agent'
  if (!WORDS.has(kind)) return `its kind “${labelOf(kind)}” is unknown: what it does is up to the agent`
  const meaning = contradiction(name, kind)
  return meaning === null ? '' : `but ${meaning}`
}

/** The agent's wording on one line, nothing hidden, and of a long one both ends. */
function labelOf(told: string): string {
  let text = trimmed(told)
  const length = points(text)
  if (length > LONGEST) {
    const end = [...text.slice(-2 * LABEL_END)].slice(-LABEL_END).join('')
    text = `${cutTo(text, LABEL_START)} … ${length - LABEL_START - LABEL_END} characters … ${end}`
  }
  return reveal(text).replaceAll('“', "'").replaceAll('”', "'")
}

/** By hand: a regular expression takes quadratic time for blanks that are not at the end. */
function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && BLANKS.includes(text.charAt(start))) start += 1
  while (end > start && BLANKS.includes(text.charAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function saysTheSame(told: string, kind: string): boolean {
  const name = trimmed(told)
  if (name === '') return true
  if (name.length > LONGEST || !/^[A-Za-z_ -]+$/.test(name)) return false
  return name === kind || readings(name).some((words) => SAME.get(kind)?.includes(words.join(' ')))
}

// ── what a label says ───────────────────────────────────────────────────────────────────────────

/** What an answer of this kind does, if its label says something else. Knows only English words: a
 *  help for the eye, never what decides. */
export function contradiction(label: string, kind: string): string | null {
  if (!WORDS.has(kind)) return null
  const senses = new Set(readings(label).flatMap(sensesOf))
  const allows = kind.startsWith('allow')
  if (senses.has(allows ? 'no' : 'yes')) return allows ? 'it allows' : 'it rejects'
  const [once, meanwhile, always, session] = ['once', 'while', 'always', 'session'].map((sense) => senses.has(sense))
  if (kind.endsWith('_always')) {
    const believed = allows && session
    const limited = meanwhile || (once && !always) || (session && !believed)
    return limited ? `it applies ${believed ? 'to the session' : 'always'}` : null
  }
  return (session || meanwhile || always) && !once ? 'it applies once' : null
}

/** The label as words: as it is written, and with `allowOnce` taken for two. */
function readings(label: string): string[][] {
  // Each by itself: to sort a run of marks takes quadratic time.
  const letters = [...cutTo(label, MOST_READ)].flatMap((char) => [...char.normalize('NFKD')])
  const text = letters.map((char) => LOOKALIKES.get(char) ?? char).join('')
  return [
    wordsOf(text.replace(SEPARATORS, ' ').replace(/\b([a-zA-Z]) (?=[a-zA-Z]\b)/g, '$1')),
    wordsOf(text.replace(/([a-z])(?=[A-Z])/g, '$1 ')),
  ]
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().replace(SEPARATORS, ' ').replace(/[^a-z ]/g, '').split(' ').filter(Boolean)
}

function sensesOf(words: string[]): string[] {
  const text = words.join(' ')
  const found = new Set<string>()
  if (ONCE.test(text)) found.add('once')
  if (FOR_A_WHILE.test(text)) found.add('while')
  if (THE_SESSION.test(text)) found.add('session')
  if (LASTING.test(text)) found.add('always')
  let denied = ''
  for (const word of words) {
    if (ASKING.has(word) && denied) {
      found.add('always') // "and don't ask again"
      denied = ''
    } else if (NOT.has(word) || word === 'without') {
      denied = word
    } else if (YES.has(word) || NO.has(word)) {
      found.add(NO.has(word) !== NOT.has(denied) ? 'no' : 'yes')
      denied = ''
    } else if (MAYBE_YES.has(word) && NOT.has(denied)) {
      found.add('no')
      denied = ''
    }
  }
  if (NOT.has(denied)) found.add('no')
  if (!found.has('yes') && !found.has('no') && words.some((word) => MAYBE_YES.has(word))) found.add('yes')
  return [...found]
}

// The answers to a permission request as people are shown them: in one order, in our words. The kind
// of an answer decides what it does, so the kind is what a person reads; the agent's label follows as a
// remark, and where it says something else than the kind, the remark says so. What is sent back is the
// option as it came. The same as `session/permission_options.py` on the command line: a test holds them together.

import { cutTo, points } from './bounds'
import type { PermissionOption } from './facts'
import { reveal } from './visible'

// A map: an agent may name a kind after a property that every object has.
const WORDS = new Map([
  ['allow_once', 'Allow once'], ['allow_always', 'Always allow'], ['reject_once', 'Reject'], ['reject_always', 'Always reject'],
])
const ORDER = [...WORDS.keys()]
const FOR_THE_SESSION = 'Allow for this session'
const UNKNOWN = 'Unknown answer'
const UNCLEAR = 'Unclear answer'
/** Labels that say no more than our words do. */
const SAME = new Map([
  ['allow_once', ['allow once', 'allow']],
  ['allow_always', ['always allow', 'allow always']],
  ['reject_once', ['reject', 'reject once']],
  ['reject_always', ['always reject', 'reject always']],
])

/** One answer for a person. With `warns` the remark must be read: the label says something else. */
export interface Shown {
  id: string
  kind: string
  words: string
  remark: string
  warns: boolean
  /** What an answer for always leads to, where it is known; null for one that is for once. */
  consequence: string | null
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
  const called = label ? `the agent calls this “${label}”` : 'the agent gives this no name'
  return byName ? called : `${called} and knows it as “${labelOf(id)}”`
}

function warningOf({ name, kind }: PermissionOption, clear: boolean): string {
  if (!clear) return 'but uses the same id for another answer: what it does is up to the agent'
  if (!WORDS.has(kind)) return `its kind “${labelOf(kind)}” is not known here: what it does is up to the agent`
  const meaning = contradiction(name, kind)
  return meaning === null ? '' : `but ${meaning}`
}

const LONGEST = 240

/** The agent's wording on one line, nothing hidden, and of a long one both ends. */
function labelOf(told: string): string {
  let text = trimmed(told)
  const length = points(text)
  if (length > LONGEST) {
    text = `${cutTo(text, 160)} … ${length - 220} characters … ${[...text.slice(-120)].slice(-60).join('')}`
  }
  return reveal(text).replaceAll('“', "'").replaceAll('”', "'")
}

const BLANKS = ' \t\r\n'

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

const setOf = (words: string) => new Set(words.split(' '))
const YES = setOf('accept accepted agree allow allowed approve approved authorise authorised authorize authorized confirm enable grant ok okay permit sure trust y yeah yep yes')
const MAYBE_YES = setOf('apply continue execute go proceed run')
const NO = setOf('abort block cancel decline declined denied deny disallow disapprove dismiss forbid n nevermind no none nope nothing prevent refuse refused reject rejected skip')
const NOT = setOf('cannot cant dont never not stop wont')
const ASKING = setOf('approval ask asked asking confirmation prompt prompting prompts questions remind')
const ONCE = /\b(?:once|one time|this time|just this|only this|just now)\b/
const LASTING = /\b(?:always|forever|permanent|permanently|every time|from now on|all future|remember|never)\b/
const THE_SESSION = /\b(?:this|the|current|whole|entire|per|for) (?:[a-z]+ )?(?:session|conversation|chat)\b/
const FOR_A_WHILE = /\b(?:this|the|current|whole|entire|per|for) (?:[a-z]+ )?turn\b|\b(?:today|temporary|temporarily)\b/
// Letters of other scripts that look like these.
const FOREIGN = [...'\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u0578\u03b9\u03bf\u03b1\u03bd\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0391\u0392\u0395\u0399\u039a\u039d\u039f\u03a4']
const OURS = [...'aeopcyxijsdnioavABEKMHOPCTXABEIKNOT']
const LOOKALIKES = new Map(FOREIGN.map((letter, at) => [letter, OURS[at] ?? '']))
const SEPARATORS = /[\x00-\x20!-&(-/:-@[-`{-~\u00b7\u2010-\u2015\u2022\u2026\u2028\u2029]+/g

/** What an answer of this kind does, if its label says something else. Knows English words alone: a
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
    return limited ? `it is meant for ${believed ? 'the session' : 'always'}` : null
  }
  return (session || meanwhile || always) && !once ? 'it is meant for once' : null
}

/** The label as words: as it is written, and with `allowOnce` taken for two. */
function readings(label: string): string[][] {
  // Each by itself: to sort a run of marks takes quadratic time.
  const letters = [...cutTo(label, 2000)].flatMap((char) => [...char.normalize('NFKD')])
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

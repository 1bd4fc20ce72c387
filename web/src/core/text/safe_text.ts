// Text from an agent, made safe to look at: whatever acts, hides or turns the writing around is
// shown as a mark, as on the command line.

import {
  CONTROLS, FLOWING_CONTROLS, HIDDEN, JOINERS, SELECTORS, SPACES, SURROGATES, type Ranges,
} from '../generated/characters'

const ALWAYS: Ranges = [...HIDDEN, ...JOINERS, ...SELECTORS, ...SURROGATES]
const hidden = oneOf(HIDDEN, SURROGATES)
const flowing = oneOf(ALWAYS, FLOWING_CONTROLS)
const decided = oneOf(ALWAYS, CONTROLS, SPACES)
const decidedLines = oneOf(ALWAYS, FLOWING_CONTROLS, SPACES)
const joiner = oneOf(JOINERS)
const selector = oneOf(SELECTORS)
const joined = /[\p{Lo}\p{Mn}\p{Mc}\p{So}\p{Sk}]$/u
// Emoji are symbols and a few punctuation marks; keycaps begin with ASCII.
const emoji = /[\p{Lo}\p{Pd}\p{Po}\p{Sk}\p{Sm}\p{So}]$/u
const letter = /[\p{Lm}\p{Lo}]$/u

function oneOf(...tables: Ranges[]): RegExp {
  const hex = (code: number) => `\\u{${code.toString(16)}}`
  const ranges = tables.flat().map(([first, last]) => `${hex(first)}-${hex(last)}`)
  return new RegExp(`[${ranges.join('')}]`, 'gu')
}

/** Flowing text (Markdown, output): lines and tabs stay. */
export function visible(text: string): string {
  return shown(text.replace(/\r\n?/g, '\n'), flowing)
}

/** One line of a file: a carriage return is a character of it, and not another line. */
export function visibleLine(text: string): string {
  return shown(text, flowing)
}

/** For a terminal's screen: its control sequences stay, what hides or turns letters around is marked. */
export function markHidden(text: string): string {
  return shown(text, hidden)
}

/** What a person decides on (a path, a command, a title): spaces that are none are marked too. */
export function reveal(text: string, lines = false): string {
  return shown(text, lines ? decidedLines : decided)
}

function shown(text: string, special: RegExp): string {
  return text.replace(special, (char: string, at: number) => mark(char, text, at))
}

function mark(char: string, text: string, at: number): string {
  const before = text.slice(Math.max(0, at - 2), at)
  if (matches(joiner, char)) return needsJoiner(before) ? char : named(char)
  if (matches(selector, char)) return hasVariants(before, char) ? char : named(char)
  const code = char.codePointAt(0) ?? 0
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd'
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : named(char)
}

function matches(pattern: RegExp, char: string): boolean {
  pattern.lastIndex = 0
  return pattern.test(char)
}

function needsJoiner(before: string): boolean {
  return last(before) >= 0x0590 && joined.test(before)
}

function hasVariants(before: string, selector: string): boolean {
  if (selector < '\ufe00' || selector > '\ufe0f') return last(before) >= 0x1820 && letter.test(before)
  return /[0-9#*]$/.test(before) || (last(before) > 0x7f && emoji.test(before))
}

function last(text: string): number {
  return [...text].at(-1)?.codePointAt(0) ?? 0
}

function named(char: string): string {
  return `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`
}

// Control sequences of a terminal: CSI, strings ended by BEL or ST, and two-character escapes.
const SEQUENCES = /\x1b\[[ -?]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]/g

/** What a terminal printed, as plain lines: for a short tail where no terminal is drawn. */
export function plainOutput(output: string): string {
  const lines = output.replace(SEQUENCES, '').split('\n')
  const last = lines.pop() ?? ''
  return visible([...lines.map(withoutReturns), last].map(lastPrinted).join('\n'))
}

/** By hand: a regular expression takes quadratic time for returns that are not at the end. */
function withoutReturns(line: string): string {
  let end = line.length
  while (end > 0 && line.charAt(end - 1) === '\r') end -= 1
  return line.slice(0, end)
}

function lastPrinted(line: string): string {
  return line.slice(line.lastIndexOf('\r', line.length - 2) + 1)
}

/** The command that runs. A single word is a shell line: it is shown as it is. */
export function commandLine(argv: readonly string[]): string {
  return argv.length === 1 ? argv[0] ?? '' : shellWords(argv)
}

/** A command as one would type it; what needs quotes has them. */
export function shellWords(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
}

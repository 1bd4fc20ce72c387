// Lists and quotes of a text in Markdown, found by a look at the beginning of each line: the parser
// takes a time that is the square of their lines, so what is too long or too deep never gets there.

/** A part of a text: a run of lists and quotes, or what is between two of them. */
export interface Part {
  text: string
  isRun: boolean
}

const SMALL = 5_000_000
const DEEPEST = 100
/** What one run may cost to parse, in lines times characters times levels. */
export const MOST_OF_RUN = 80_000_000

const BLANK = /^[ \t]*$/
const BEGINS = /^ {0,3}(?:>|(?:[-*+]|1[.)])[ \t]+\S)/
const NUMBERED = /^ {0,3}\d{1,9}[.)][ \t]+\S/
const GOES_ON = /^(?:[ \t>]|[-*+]\s|\d{1,9}[.)]\s)/
const CUTS = /^(?:```|~~~|#{1,6}[ \t])/
const FENCE = /^ {0,3}(?:(`{3,})[^`]*$|(~{3,}))/
const DEEP = /^(?:[ \t>]|[-*+](?=\s)|\d{1,9}[.)](?=\s)){200}/m
const LEVELS = /^(?:[ \t>]|[-*+](?=\s)|\d{1,9}[.)](?=\s))*/

/** The parts of a text, in order; a text that costs little whatever it holds is one. */
export function partsOf(text: string): Part[] {
  if (text.length * lineCount(text) <= SMALL && !DEEP.test(text)) return [{ text, isRun: false }]
  const parts: Part[] = []
  let begin = 0
  let isRun = false
  let fence = ''
  let afterBlank = true
  const cut = (at: number, next: boolean) => {
    if (at > begin) parts.push({ text: text.slice(begin, at), isRun })
    begin = at
    isRun = next
  }
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at)
    const next = end < 0 ? text.length : end + 1
    const line = text.slice(at, end < 0 ? next : end)
    if (isRun && (CUTS.test(line) || (afterBlank && !BLANK.test(line) && !GOES_ON.test(line)))) cut(at, false)
    if (fence) {
      if (closes(line, fence)) fence = ''
    } else if (!isRun) {
      fence = fenceOf(line)
      if (!fence && (BEGINS.test(line) || (afterBlank && NUMBERED.test(line)))) cut(at, true)
    }
    afterBlank = BLANK.test(line)
    at = next
  }
  cut(text.length, false)
  return parts
}

/** Whether a block is a list or a quote that costs too much to parse. */
export function isTooLong(block: string): boolean {
  return (BEGINS.test(block) || NUMBERED.test(block)) && costOf(block) > MOST_OF_RUN
}

/** What a run costs to parse. */
export function costOf(run: string): number {
  let deepest = 1
  for (const line of run.split('\n')) deepest = Math.max(deepest, levelsOf(line))
  return deepest > DEEPEST ? Infinity : run.length * lineCount(run) * deepest
}

/** Lines that only begin with blanks are most often code, of one level. */
function levelsOf(line: string): number {
  const head = LEVELS.exec(line)?.[0] ?? ''
  return /[^ \t]/.test(head) ? head.length / 2 : 1
}

function fenceOf(line: string): string {
  const found = FENCE.exec(line)
  return found?.[1] ?? found?.[2] ?? ''
}

function closes(line: string, fence: string): boolean {
  const signs = line.trim()
  return signs.startsWith(fence) && signs === signs.charAt(0).repeat(signs.length)
}

function lineCount(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

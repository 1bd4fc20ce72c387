// A person's review of changes as one prompt to the agent: the same text as src/dragoman/review.py makes,
// which golden vectors compare.

export interface ReviewComment {
  /** Relative to the session's folder if it is beneath it. */
  path: string
  text: string
  /** Which version the lines are numbered in: the old one where all of them were removed. */
  side?: 'new' | 'old'
  /** 0 for a comment on the whole file. */
  start?: number
  end?: number
  /** As in the diff, each with its sign. */
  lines?: string[]
  /** The lines are no longer there. */
  stale?: boolean
}

/** A change that the person undid: lines of the version that the agent left, or the file. */
export interface PutBack { path: string; start?: number; end?: number }

export interface Review { text?: string; comments?: ReviewComment[]; putBack?: PutBack[] }

const MOST_LINES = 40
const MOST_CHARACTERS = 500
const OPENING = 'Please address these comments on your changes.'
const STALE = '(This code has changed since the comment was written.)'
const PUT_BACK = 'I put these changes back, so the files are as they were before:'

/** Empty if there is nothing to say. */
export function reviewPrompt({ text = '', comments = [], putBack = [] }: Review): string {
  const parts: string[] = []
  if (trimmed(text)) parts.push(trimmed(text))
  else if (comments.length) parts.push(OPENING)
  parts.push(...comments.map(commented))
  if (putBack.length) parts.push([PUT_BACK, ...putBack.map(({ path, start = 0, end = 0 }) => `- ${place(path, start, end)}`)].join('\n'))
  return parts.join('\n\n')
}

function commented({ path, text, side = 'new', start = 0, end = 0, lines = [], stale = false }: ReviewComment): string {
  const said = [`${place(path, start, end)}${side === 'old' ? ' before the change' : ''}:`]
  if (lines.length) said.push(quoted(shortened(lines)))
  if (stale) said.push(STALE)
  return [...said, trimmed(text)].join('\n')
}

/** What the other side calls a space, no more. */
function trimmed(text: string): string {
  return text.replace(/^[ \t\r\n]+/, '').replace(/[ \t\r\n]+$/, '')
}

export function place(path: string, start: number, end: number): string {
  const name = UNPRINTABLE.test(path) ? asciiOf(path) : path
  if (start === 0) return name
  return end <= start ? `${name}:${start}` : `${name}:${start}-${end}`
}

const UNPRINTABLE = /[\0-\x1f\x7f\x80-\x9f\u2028\u2029]/

function asciiOf(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function shortened(lines: string[]): string[] {
  const half = MOST_LINES / 2
  const some = lines.length > MOST_LINES ? [...lines.slice(0, half), `… ${lines.length - 2 * half} lines …`, ...lines.slice(-half)] : lines
  return some.map((line) => {
    if (line.length <= MOST_CHARACTERS) return line
    const characters = [...line.slice(0, 2 * MOST_CHARACTERS + 2)]
    return characters.length <= MOST_CHARACTERS ? line : `${characters.slice(0, MOST_CHARACTERS).join('')}…`
  })
}

/** Fenced by more backticks than the lines have in a row. */
function quoted(lines: string[]): string {
  const text = lines.join('\n')
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(Math.max(3, longest + 1))
  return `${fence}diff\n${text}\n${fence}`
}

// Code as pieces with the name of a colour each, to be drawn as text: no markup is made of it.

import type { FileChange } from '../generated/responses'
import type { DiffRow } from '../changes/diff'
import type { ReviewHunk } from '../changes/hunks'
import { table } from './format'
import { highlight } from './highlight'

export interface Token { text: string; kind: string; mark?: boolean }

// A file is read as a whole, so that a text over many lines has its colour; a larger one hunk by hunk.
const WHOLE = 60_000

const LANGUAGES = table<string>({
  sh: 'bash', bash: 'bash', zsh: 'bash', c: 'c', h: 'c', cc: 'cpp', cpp: 'cpp', cxx: 'cpp', hpp: 'cpp', hh: 'cpp', cs: 'csharp', css: 'css', scss: 'css',
  diff: 'diff', patch: 'diff', go: 'go', ini: 'ini', cfg: 'ini', toml: 'ini', conf: 'ini', java: 'java', js: 'javascript', jsx: 'javascript', mjs: 'javascript',
  cjs: 'javascript', json: 'json', kt: 'kotlin', kts: 'kotlin', md: 'markdown', markdown: 'markdown', php: 'php', py: 'python', pyi: 'python', rb: 'ruby', rs: 'rust',
  sql: 'sql', swift: 'swift', ts: 'typescript', tsx: 'typescript', mts: 'typescript', html: 'xml', xml: 'xml', svg: 'xml', vue: 'xml', yml: 'yaml', yaml: 'yaml',
})

export function languageOf(path: string): string {
  const name = path.split('/').at(-1) ?? ''
  return LANGUAGES[name.split('.').at(-1)?.toLowerCase() ?? ''] ?? ''
}

const known = new WeakMap<FileChange, Map<DiffRow, Token[]>>()

/** The pieces of each row that has colours. */
export function colours(change: FileChange, hunks: readonly ReviewHunk[]): Map<DiffRow, Token[]> {
  const before = known.get(change)
  if (before !== undefined) return before
  const found = new Map<DiffRow, Token[]>()
  known.set(change, found)
  const language = languageOf(change.path)
  if (language === '') return found
  for (const side of ['new', 'old'] as const) {
    const text = side === 'new' ? change.after : change.before
    const lines = text !== null && text.length <= WHOLE ? tokenLines(text, language, WHOLE) : null
    for (const { rows } of hunks) {
      // A kept line is drawn as it is now.
      const drawn = rows.filter((row) => row[side] !== null && (side === 'new' || row.new === null))
      const own = lines ?? tokenLines(drawn.map((row) => row.text).join('\n'), language)
      drawn.forEach((row, at) => {
        const tokens = own[lines === null ? at : (row[side] ?? 0) - 1]
        if (tokens?.map((token) => token.text).join('') === row.text) found.set(row, tokens)
      })
    }
  }
  return found
}

const PIECES = /<span class="([^"]*)">|(<\/span>)|([^<]+)/g
const ENTITIES = table<string>({ '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'", '&#38;': '&', '&#60;': '<', '&#62;': '>', '&#34;': '"', '&#39;': "'" })

export function tokenLines(code: string, language: string, most?: number): Token[][] {
  const lines: Token[][] = [[]]
  const open: string[] = []
  for (const [, kind, closed, text] of highlight(code, language, most).matchAll(PIECES)) {
    if (kind !== undefined) open.push(kind)
    else if (closed !== undefined) open.pop()
    else add(lines, (text ?? '').replace(/&#?\w+;/g, (entity) => ENTITIES[entity] ?? entity), open.at(-1) ?? '')
  }
  return lines
}

function add(lines: Token[][], text: string, kind: string): void {
  text.split('\n').forEach((part, at) => {
    if (at > 0) lines.push([])
    if (part) lines.at(-1)?.push({ text: part, kind })
  })
}

/** The same pieces, cut where a mark begins and ends. */
export function withMark(tokens: readonly Token[], [from, to]: readonly [number, number]): Token[] {
  const found: Token[] = []
  let at = 0
  for (const { text, kind } of tokens) {
    const cuts = [0, from - at, to - at, text.length].map((cut) => Math.min(Math.max(cut, 0), text.length))
    for (let part = 0; part < 3; part++) {
      const piece = text.slice(cuts[part], cuts[part + 1])
      if (piece) found.push(part === 1 ? { text: piece, kind, mark: true } : { text: piece, kind })
    }
    at += text.length
  }
  return found
}

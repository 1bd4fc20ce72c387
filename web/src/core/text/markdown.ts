// Markdown as blocks, each rendered for itself: a message that grows by a word draws only its last
// block again. Raw HTML is text here, before any sanitiser sees it; images are links, because the
// page loads nothing from elsewhere; a link whose text does not name its target is followed by it.

import { Lexer, Marked, type Token } from 'marked'
import { MOST_OF_RUN, costOf, isTooLong, partsOf } from './containers'
import { highlight } from './highlight'
import { escapeHtml } from './html'
import { visible } from './safe_text'

const coloured = markedWith(highlight)
const uncoloured = markedWith(escapeHtml)

// The mark of a footnote, and at the beginning of a paragraph the number it is explained under.
const FOOTNOTE = /^\[\^([\w-]{1,32})\](:?)/

function markedWith(colours: (code: string, language: string) => string): Marked {
  return new Marked({ gfm: true, breaks: false }, {
    extensions: [{
      name: 'footnote',
      level: 'inline',
      start: (text) => text.indexOf('[^'),
      tokenizer(text) {
        const found = FOOTNOTE.exec(text)
        return found === null ? undefined : { type: 'footnote', raw: found[0], label: found[1] }
      },
      renderer: ({ label }) => `<sup class="footnote">${escapeHtml(String(label))}</sup>`,
    }],
    renderer: {
      html: ({ text }) => escapeHtml(text),
      image: ({ href, text }) => link(href, `image: ${escapeHtml(text || href)}`, text),
      link({ href, text, tokens }) {
        return link(href, this.parser.parseInline(tokens), text)
      },
      code: ({ text, lang }) => codeBlock(text, lang ?? '', colours),
      checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
    },
  })
}

/** Splits a text into blocks; when the text only grew, its settled beginning is not looked at again. */
export class Blocks {
  private text = ''
  private settled: string[] = []
  private settledLength = 0
  private open: string[] = []
  private settledWork: number[] = []
  private openWork: number[] = []
  private parts: { text: string; blocks: Parsed[] }[] = []
  /** How many of the blocks are drawn with marks and colours; a text that is too much work has more. */
  drawn = 0

  split(raw: string): string[] {
    const text = visible(raw)
    if (!text.startsWith(this.text)) this.reset()
    this.text = text
    this.settle(this.parsed(text.slice(this.settledLength)))
    let left = MOST_WORK
    const beyond = [...this.settledWork, ...this.openWork].findIndex((work) => (left -= work) < 0)
    const all = [...this.settled, ...this.open]
    this.drawn = beyond < 0 ? all.length : beyond
    return all
  }

  /** The blocks of a text. A list or a quote that is too much for the parser is a block as it is; the
   * parts that were there the last time are not parsed again. */
  private parsed(text: string): Parsed[] {
    const known = this.parts
    this.parts = []
    let left = this.settledWork.reduce((rest, work) => rest - work, MOST_WORK)
    for (const part of partsOf(text)) {
      const cost = part.isRun ? costOf(part.text) : 0
      const share = cost > MOST_OF_RUN ? 0 : (cost / MOST_OF_RUN) * RUN_WORK
      left -= share
      const same = known[this.parts.length]
      const blocks = same?.text === part.text && left >= 0 ? same.blocks : parse(part.text, cost, share, left)
      this.parts.push({ text: part.text, blocks })
    }
    return this.parts.flatMap(({ blocks }) => blocks)
  }

  /** All but the last few blocks are final, unless there is a link definition. */
  private settle(all: Parsed[]): void {
    const blocks = all.filter(({ type }) => type !== 'def')
    const keep = blocks.length < all.length ? 0 : Math.max(0, blocks.length - 4)
    for (const { raw } of blocks.slice(0, keep)) this.settledLength += raw.length
    const settled = blocks.slice(0, keep).filter(isSomething)
    this.settled = this.settled.concat(settled.map(({ raw }) => raw))
    this.settledWork = this.settledWork.concat(settled.map(({ work }) => work))
    const open = blocks.slice(keep).filter(isSomething)
    this.open = open.map(({ raw }) => raw)
    this.openWork = open.map(({ work }) => work)
  }

  private reset(): void {
    this.settled = []
    this.settledWork = []
    this.settledLength = 0
    this.open = []
    this.parts = []
  }
}

interface Parsed {
  raw: string
  type: string
  work: number
}

function parse(text: string, cost: number, share: number, left: number): Parsed[] {
  if (left < 0) return [{ raw: text, type: 'unparsed', work: Infinity }]
  if (cost > MOST_OF_RUN) return [{ raw: text, type: 'unparsed', work: 0 }]
  try {
    const tokens = new Lexer({ gfm: true }).blockTokens(text)
    return tokens.map((token, at) => ({ raw: token.raw, type: token.type, work: workOf(token) + (at ? 0 : share) }))
  } catch {
    return [{ raw: text, type: 'unparsed', work: Infinity }] // it is deeper than there is room for calls
  }
}

// Signs that may begin or end something within a paragraph. The time to pair them is the square of
// their number, so a paragraph with more of them is shown as it was written.
const SIGNS = /[*_~`![\]()<>&@\\]/g
const MOST_SIGNS = 2_000
const LONGEST = 100_000
// Between these a sign has no pair: a blank line, or the beginning of an item of a list.
const PARAGRAPHS = /\n[ \t]*(?=\n)|\n(?= {0,3}[-*+] )/

// What one text may cost, in signs times characters; a character of code may cost as much as CODE of these.
const MOST_WORK = 20_000_000
// The most that a list or a quote costs to parse.
const RUN_WORK = 10_000_000
const CODE = 500

/** One block as HTML with no markup of the author's own in it. */
export function renderBlock(block: string): string {
  return isTooMuch(block) ? asWritten(block) : coloured.parse(block, { async: false })
}

/** The same without its marks; code is code, without colours. */
export function asWritten(block: string): string {
  return isFence(block) ? uncoloured.parse(block, { async: false }) : `<p class="unmarked">${escapeHtml(block)}</p>\n`
}

// With another backtick in its line, three of them begin inline code: that is a paragraph.
const FENCE = /^ {0,3}(?:`{3,}[^`\n]*(?:\n|$)|~{3,})/

/** Whether the block is fenced code, in which nothing is paired. */
export function isFence(block: string): boolean {
  return FENCE.test(block)
}

function isTooMuch(block: string): boolean {
  return !isFence(block) && (block.length > LONGEST || isTooLong(block) || block.split(PARAGRAPHS).some((part) => signsIn(part) > MOST_SIGNS))
}

function workOf({ raw, type }: Token): number {
  if (isFence(raw)) return raw.length * CODE
  if (isTooMuch(raw)) return 0
  const code = raw.includes('```') || raw.includes('~~~') ? raw.length * CODE : 0
  const parts = raw.split(type === 'table' ? '\n' : PARAGRAPHS)
  return parts.reduce((sum, part) => sum + signsIn(part) * part.length, code)
}

function signsIn(text: string): number {
  return text.match(SIGNS)?.length ?? 0
}

function isSomething({ raw }: Token): boolean {
  return raw.trim() !== ''
}

const SAFE = /^(https?:|mailto:)/i

function link(href: string, inner: string, text: string): string {
  const target = href.trim()
  if (!SAFE.test(target)) return `${inner} <span class="target">(${escapeHtml(target)})</span>`
  const attributes = `href="${escapeHtml(target)}" title="${escapeHtml(target)}" target="_blank" rel="noopener noreferrer"`
  const anchor = `<a ${attributes}>${inner}</a>`
  return text.trim() === target ? anchor : `${anchor} <span class="target">(${escapeHtml(place(target))})</span>`
}

function place(target: string): string {
  try {
    const url = new URL(target)
    return url.host || url.pathname
  } catch {
    return target
  }
}

function codeBlock(text: string, info: string, colours: (code: string, language: string) => string): string {
  const language = info.split(/\s/)[0] ?? ''
  const label = language ? `<span class="lang">${escapeHtml(language)}</span>` : ''
  return `<div class="code">${label}<pre><code>${colours(text, language)}</code></pre></div>\n`
}

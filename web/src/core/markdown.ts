// Markdown as blocks, each rendered for itself: a message that grows by a word draws only its last
// block again. Raw HTML is text here, before any sanitiser sees it; images are links, because the
// page loads nothing from elsewhere; a link that does not name its target has it written behind.

import { Lexer, Marked, type Token } from 'marked'
import { highlight } from './highlight'
import { escapeHtml } from './html'
import { visible } from './visible'

const marked = new Marked({ gfm: true, breaks: false })

marked.use({
  renderer: {
    html: ({ text }) => escapeHtml(text),
    image: ({ href, text }) => link(href, `image: ${escapeHtml(text || href)}`, text),
    link({ href, text, tokens }) {
      return link(href, this.parser.parseInline(tokens), text)
    },
    code: ({ text, lang }) => codeBlock(text, lang ?? ''),
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
})

/** Splits a text into blocks; when the text only grew, its settled beginning is not looked at again. */
export class Blocks {
  private text = ''
  private settled: string[] = []
  private settledLength = 0
  private open: string[] = []

  split(raw: string): string[] {
    const text = visible(raw)
    if (!text.startsWith(this.text)) this.reset()
    this.text = text
    const tokens = new Lexer({ gfm: true }).blockTokens(text.slice(this.settledLength))
    const blocks = tokens.filter((token) => token.type !== 'def').map((token) => token.raw)
    this.settle(tokens, blocks)
    return [...this.settled, ...this.open].filter((block) => block.trim() !== '')
  }

  /** All but the last few blocks cannot change any more, unless a definition of links is about. */
  private settle(tokens: Token[], blocks: string[]): void {
    const keep = tokens.some((token) => token.type === 'def') ? 0 : Math.max(0, blocks.length - 4)
    for (const block of blocks.slice(0, keep)) this.settledLength += block.length
    this.settled = this.settled.concat(blocks.slice(0, keep))
    this.open = blocks.slice(keep)
  }

  private reset(): void {
    this.settled = []
    this.settledLength = 0
    this.open = []
  }
}

// Signs that may begin or end something within a paragraph. The time to pair them is the square of
// their number, so a paragraph with more of them is shown as it was written.
const SIGNS = /[*_~`![\]<>&@\\]/g
const MOST_SIGNS = 2_000
const LONGEST = 100_000
// Between these a sign has no pair: a blank line, or the beginning of an item of a list.
const PARAGRAPHS = /\n[ \t]*(?=\n)|\n(?= {0,3}[-*+] )/

/** One block as HTML with no markup of the author's own in it. */
export function renderBlock(block: string): string {
  return isTooMuch(block) ? `<p class="unmarked">${escapeHtml(block)}</p>\n` : marked.parse(block, { async: false })
}

function isTooMuch(block: string): boolean {
  if (/^ {0,3}(```|~~~)/.test(block)) return false // code: nothing in it is paired
  return block.length > LONGEST || block.split(PARAGRAPHS).some((part) => (part.match(SIGNS)?.length ?? 0) > MOST_SIGNS)
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

function codeBlock(text: string, info: string): string {
  const language = info.split(/\s/)[0] ?? ''
  const label = language ? `<span class="lang">${escapeHtml(language)}</span>` : ''
  return `<div class="code">${label}<pre><code>${highlight(text, language)}</code></pre></div>\n`
}

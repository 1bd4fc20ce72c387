// A text in Markdown. Each block is drawn for itself and again only when it changed.

import { memo, useRef } from 'react'
import { Blocks, asWritten, isFence, renderBlock } from '../../core/text/markdown'
import { trustedHtml } from '../../live/trusted_html'
import { copy } from '../common/clipboard'
import { Icon } from '../common/icons'

export function Markdown({ text }: { text: string }) {
  const splitter = useRef<Blocks | null>(null)
  splitter.current ??= new Blocks()
  const blocks = splitter.current.split(text)
  const { drawn } = splitter.current
  return (
    <div className="markdown">
      {blocks.map((block, at) => <Block key={at} block={block} plain={at >= drawn} />)}
    </div>
  )
}

const Block = memo(function Block({ block, plain }: { block: string; plain: boolean }) {
  const __html = plain ? trustedHtml(asWritten(block)) : rendered(block)
  const html = <div className="block" dangerouslySetInnerHTML={{ __html }} />
  if (!isFence(block)) return html
  return (
    <div className="fenced">
      {html}
      <button type="button" className="ghost small" aria-label="Copy code" title="Copy code" onClick={() => copy(fenced(block), 'Code')}><Icon name="copy" /></button>
    </div>
  )
})

/** The text between the fences. */
function fenced(block: string): string {
  return block.replace(/^[^\n]*\n/, '').replace(/\n? {0,3}(```|~~~)[`~]*\s*$/, '')
}

// Rows leave the page when one scrolls on; coming back must not cost a rendering.
const CACHED = 2000
const cache = new Map<string, TrustedHTML>()

function rendered(block: string): TrustedHTML {
  const known = cache.get(block)
  if (known !== undefined) return known
  const html = trustedHtml(renderBlock(block))
  if (block.length < 20_000) cache.set(block, html)
  if (cache.size > CACHED) cache.delete(cache.keys().next().value ?? '')
  return html
}

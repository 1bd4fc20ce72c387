// The only two places where text becomes markup or a script's address. Without the browser's trusted
// types the same checks run.

import DOMPurify from 'dompurify'
import { reveal, visible } from '../core/text/safe_text'

const TAGS = [
  'a', 'b', 'blockquote', 'br', 'code', 'del', 'div', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr',
  'li', 'ol', 'p', 'pre', 'span', 'strong', 'sub', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
]
const ATTRIBUTES = ['align', 'class', 'href', 'rel', 'start', 'target', 'title']

// Said once: a thread has thousands of blocks, and to read this again for each costs as much as the
// work itself.
DOMPurify.setConfig({
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_ATTR: ['target'],
  // The expression above is asked about every attribute but these, which name no address.
  ADD_URI_SAFE_ATTR: ['align', 'rel', 'start', 'target'],
  RETURN_TRUSTED_TYPE: true,
})

// Markdown may write a character as an entity; what it becomes is text like any other.
DOMPurify.addHook('uponSanitizeElement', (node) => {
  if (node.nodeType !== Node.TEXT_NODE) return
  const text = visible(node.textContent ?? '')
  if (text !== node.textContent) node.textContent = text
})
DOMPurify.addHook('uponSanitizeAttribute', (_, attribute) => {
  if (attribute.attrName === 'title') attribute.attrValue = reveal(attribute.attrValue)
})

/** HTML that was rendered from an agent's Markdown, sanitised. */
export function trustedHtml(html: string): TrustedHTML {
  return DOMPurify.sanitize(html, { RETURN_TRUSTED_TYPE: true })
}

const own = (url: string): string => {
  if (new URL(url, location.href).origin !== location.origin) throw new TypeError('not a script of ours')
  return url
}

const policy = window.trustedTypes?.createPolicy('dragoman', { createScriptURL: own })

export function scriptUrl(url: string): TrustedScriptURL | string {
  return policy?.createScriptURL(url) ?? own(url)
}

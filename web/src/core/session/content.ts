// The text of what messages and tool calls carry.

import type { Content } from '../generated/content'

/** The words in it that a person would read. */
export function textOf(content: Content): string {
  if (content.type === 'text') return content.text
  return content.type === 'resource' ? (content.content ?? '') : ''
}

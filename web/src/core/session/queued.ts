// A prompt in the queue as someone edits it: its words change, whatever else it carries stays. Pure.

import type { Content, Json, ResourceLink } from '../generated/content'

/** What was typed; not the text of files that were attached. */
export function wordsOf(content: Content[]): string {
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** The attachments of a prompt. Links of mentions are not among them: they are made from the text again. */
export function attachedTo(content: Content[]): Content[] {
  const words = wordsOf(content)
  return content.filter((part) => part.type !== 'text' && !(part.type === 'resource_link' && isMentioned(part, words)))
}

/** The prompt to send in its place. */
export function edited(content: Content[], text: string): { text: string; content?: Json[] } {
  const attached = attachedTo(content).map((part): Json => ({ ...part }))
  return attached.length ? { text, content: attached } : { text }
}

function isMentioned({ name }: ResourceLink, words: string): boolean {
  return words.includes(`@${name}`) || words.includes(`@"${name}"`)
}

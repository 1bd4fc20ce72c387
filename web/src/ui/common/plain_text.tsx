// Text of an agent's choosing, as text: one line, nothing hidden.

import { reveal } from '../../core/text/safe_text'

export function Plain({ text, lines = false }: { text: string; lines?: boolean }) {
  return <bdi>{reveal(text, lines)}</bdi>
}

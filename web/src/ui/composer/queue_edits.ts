// Changes of queued prompts that were not saved yet. They stay when one looks elsewhere, and when the
// prompt goes before them, as it was, their words go to the composer.

import type { LiveSession } from '../../live/session'
import { addToDraft } from './drafts'

/** Move what was written for prompts that have left the queue into the draft; whether there was any. */
export function rescueEdits(session: LiveSession): boolean {
  let found = false
  for (const [id, { before, text }] of session.edits) {
    if (!session.loaded || session.state.queue.some((prompt) => prompt.id === id)) continue
    session.edits.delete(id)
    if (text.trim() === '' || text === before) continue
    addToDraft(session.id, text)
    found = true
  }
  return found
}

// How turns ended that did not complete.

import { isOver, type SessionState, type TurnState } from './state'
import { table } from '../text/format'

const STOPPED = table<string>({
  cancelled: 'Stopped.',
  max_tokens: 'Stopped: the model reached its output limit.',
  max_turn_requests: 'Stopped: too many requests in one turn.',
  refusal: 'The agent refused to continue.',
})

/** The text at the end of a turn; null for one that completed or still runs. */
export function endingOf(turn: TurnState | undefined): string | null {
  return turn !== undefined && isOver(turn.status) ? STOPPED[turn.stopReason ?? ''] ?? null : null
}

/** The same for an entry that is the last of its turn. The last turn shows it below the thread. */
export function endingBehind({ entries, turns }: SessionState, at: number): string | null {
  const id = entries[at]?.turnId
  if (id == null || entries[at + 1]?.turnId === id || turns.at(-1)?.id === id) return null
  return endingOf(turns.find((turn) => turn.id === id))
}

// Prevents accidental answers: a question accepts one only after it has been in its place for a moment.

import { useEffect, useReducer, useRef } from 'react'
import type { LiveSession } from '../../live/session'

const TOO_SOON_MS = 300

/** Whether a question was there long enough for an answer to be meant for it, and for as many sessions as it
 * counts for; `shown` is when it took the place of another. */
export function useAnswerDelay(session: LiveSession, id: string, position: number, count = 1, shown = -Infinity): boolean {
  const place = `${position} ${count}`
  const [, drawAgain] = useReducer((count: number) => count + 1, 0)
  const since = useRef({ place, at: Math.max(session.arrivals.get(id) ?? -Infinity, shown) })
  if (since.current.place !== place) since.current = { place, at: performance.now() }
  const wait = since.current.at + TOO_SOON_MS - performance.now()
  useEffect(() => {
    if (wait <= 0) return
    const timer = setTimeout(drawAgain, wait)
    return () => clearTimeout(timer)
  })
  return wait <= 0
}

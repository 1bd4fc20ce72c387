// What the keyboard does in a review. The one that is on the screen registers itself here.

import { useEffect, useRef } from 'react'

export interface ReviewKeys {
  /** It is a screen of its own: its keys count wherever the focus is. */
  wide: boolean
  moveHunk: (by: number) => void
  moveFile: (by: number) => void
  viewed: () => void
  comment: () => void
  keep: () => void
  putBack: () => void
}

const shown: { current: ReviewKeys }[] = []

export function useReviewKeys(keys: ReviewKeys): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    shown.push(latest)
    return () => void shown.splice(shown.indexOf(latest), 1)
  }, [])
}

/** The review that is on the screen. */
export function shownReview(): ReviewKeys | null {
  return shown.at(-1)?.current ?? null
}

/** The same, if single letters are meant for it: next to a thread, it has to have the focus. */
export function focusedReview(): ReviewKeys | null {
  const review = shownReview()
  return review?.wide || document.activeElement?.closest('.changes') ? review : null
}

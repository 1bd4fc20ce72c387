// What a person has said and decided about a session's changes and not sent yet. This browser keeps it, over
// reloads and for all its tabs.

import { reviewPrompt, type Review, type ReviewComment } from '../../core/changes/review'
import { anchorOf, hunksOf, type Place } from '../../core/changes/hunks'
import { within } from '../../core/text/format'
import type { FileChange } from '../../live/api'
import { Signal } from '../../live/signal'

/** On lines of a file by its whole path; a comment on the file as a whole starts at line 0. */
export interface PendingComment extends Place { id: string; path: string; text: string }

/** A restore that can be undone. Lines are numbered as they were when it was asked for. If it `waits` for the end of
 *  a turn, then the hunk or the file by this key, or everything if that is empty. */
export interface Undone { restoreId: string; session: string; path: string; start: number; end: number; more: number; waits?: string }

export interface PendingReview {
  /** By path, the version that was looked at. */
  viewed: Record<string, string>
  /** Keys of hunks. */
  kept: string[]
  comments: PendingComment[]
  undone: Undone[]
  /** Restores that were sent to the agent in a review; they can still be undone. */
  told: string[]
  text: string
  at: number
}

const PREFIX = 'dragoman.review.'
const MOST_SESSIONS = 100
const MOST_MARKS = 5_000
const MOST_UNDONE = 50

const known = new Map<string, PendingReview>()
export const reviewsChanged = new Signal()

window.addEventListener('storage', ({ key }) => {
  if (key !== null && !key.startsWith(PREFIX)) return
  known.clear()
  reviewsChanged.emit()
})

export function pendingReview(session: string): PendingReview {
  let review = known.get(session)
  if (review === undefined) known.set(session, (review = stored(session)))
  return review
}

function stored(session: string): PendingReview {
  const none: PendingReview = { viewed: {}, kept: [], comments: [], undone: [], told: [], text: '', at: 0 }
  try {
    return { ...none, ...JSON.parse(localStorage.getItem(PREFIX + session) ?? '{}') as Partial<PendingReview> }
  } catch {
    return none
  }
}

export function changeReview(session: string, change: Partial<PendingReview>): void {
  const review = { ...pendingReview(session), ...change, at: Date.now() }
  review.viewed = Object.fromEntries(Object.entries(review.viewed).slice(-MOST_MARKS))
  review.kept = review.kept.slice(-MOST_MARKS)
  review.undone = review.undone.slice(-MOST_UNDONE)
  review.told = review.told.filter((id) => review.undone.some(({ restoreId }) => restoreId === id))
  known.set(session, review)
  try {
    if (localStorage.getItem(PREFIX + session) === null) makeRoom()
    localStorage.setItem(PREFIX + session, JSON.stringify(review))
  } catch {
    // No room in the browser: it is kept for as long as this tab is open.
  }
  reviewsChanged.emit()
}

/** The oldest go, but none that is still to be sent. */
function makeRoom(): void {
  const found = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))
  const ages = found.map((key) => ({ key, review: stored(key.slice(PREFIX.length)) })).sort((a, b) => a.review.at - b.review.at)
  const spare = ages.filter(({ review }) => review.comments.length === 0 && review.text === '')
  for (const { key } of spare.slice(0, Math.max(0, found.length - MOST_SESSIONS + 1))) localStorage.removeItem(key)
}

export function newComment(session: string, path: string, place: Place, text: string): void {
  const id = `c-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`
  changeReview(session, { comments: [...pendingReview(session).comments, { ...place, id, path, text }] })
}

export function editComment(session: string, id: string, text: string): void {
  changeReview(session, { comments: pendingReview(session).comments.map((each) => (each.id === id ? { ...each, text } : each)) })
}

export function dropComment(session: string, id: string): void {
  changeReview(session, { comments: pendingReview(session).comments.filter((each) => each.id !== id) })
}

/** What was put back and the agent does not know of. */
export function untold({ undone, told }: PendingReview): Undone[] {
  return undone.filter(({ restoreId }) => !told.includes(restoreId))
}

/** The review as it is sent, in the order of the files. `changes` are all of the session. */
export function reviewOf(session: string, changes: readonly FileChange[], cwd: string): Review {
  const review = pendingReview(session)
  const byPath = new Map(changes.map((change, at) => [change.path, { change, at }]))
  const placed = review.comments.map((comment) => ({ ...placedComment(comment, byPath.get(comment.path)?.change, cwd), at: byPath.get(comment.path)?.at ?? changes.length }))
  placed.sort((a, b) => a.at - b.at || a.start - b.start)
  return {
    text: review.text,
    comments: placed.map(({ at: _, ...comment }) => comment),
    putBack: untold(review).filter((each) => each.session === session).map(({ path, start, end }) => ({ path: within(path, cwd), start, end })),
  }
}

export function placedComment(comment: PendingComment, change: FileChange | undefined, cwd: string): Required<ReviewComment> {
  const { path, text, side, lines } = comment
  const anchor = anchorOf(comment, change === undefined ? [] : hunksOf(change), change?.after ?? null)
  return { path: within(path, cwd), text, side, lines, start: anchor.start, end: anchor.end, stale: anchor.stale }
}

export function promptOf(session: string, changes: readonly FileChange[], cwd: string): string {
  return reviewPrompt(reviewOf(session, changes, cwd))
}

/** It was sent. What was put back can still be undone. */
export function reviewSent(session: string): void {
  const { undone } = pendingReview(session)
  changeReview(session, { comments: [], text: '', told: undone.map(({ restoreId }) => restoreId) })
}

// The keyboard: one table of what each key does, which the help lists. Single letters count only
// outside of fields, and can be turned off.

import { byProject, shownSessions } from '../../core/session/listing'
import { store } from '../../live/store'
import { currentFolder, currentSession } from './actions'
import { starts } from '../../live/starts'
import { cancelStart } from '../start/starting'
import { beginSession } from '../start/wish'
import { currentRoute, go, paths } from './route'
import { settings } from './settings'
import { shell } from './shell'
import { focusedReview, shownReview } from '../review/review_keys'
import { stop } from '../composer/stop_button'

/** False leaves the key to the browser. */
type Handler = () => boolean | void

interface Shortcut {
  /** The keys as the help shows them. */
  keys: string
  does: string
  /** What each of them does; without it, the element that has the focus handles them. */
  run?: Record<string, Handler>
}

export const SHORTCUTS: Shortcut[] = [
  { keys: 'Ctrl K', does: 'Open the command palette', run: { 'Ctrl K': togglePalette } },
  { keys: 'Enter', does: 'Send; Shift Enter starts a new line' },
  { keys: 'Alt Enter', does: 'While a turn runs: say it into the turn, or queue it if Enter steers' },
  { keys: 'Esc', does: 'Leave the prompt; cancel a start' },
  { keys: 'Esc Esc', does: 'Stop the turn', run: { 'Esc Esc': stopTurn } },
  { keys: '↑', does: 'In an empty prompt: your last prompt; in the list of sessions, up, and → to the actions' },
  { keys: 'Ctrl F', does: 'Find in the transcript', run: { 'Ctrl F': findInTranscript } },
  { keys: 'j k', does: 'Next, previous entry; in a review, hunk', run: { j: () => move(1), k: () => move(-1) } },
  { keys: 'J K', does: 'Next, previous session', run: { J: () => moveSession(1), K: () => moveSession(-1) } },
  { keys: 'g i', does: 'Inbox', run: { 'g i': () => go('#/inbox') } },
  { keys: 'g g', does: 'Grid', run: { 'g g': () => go('#/grid') } },
  { keys: 'g a', does: 'Agents', run: { 'g a': () => go('#/agents') } },
  { keys: 'g p', does: 'Policies', run: { 'g p': () => go('#/policies') } },
  { keys: 'g u', does: 'Usage', run: { 'g u': () => go('#/usage') } },
  { keys: 'g d', does: 'Devices', run: { 'g d': () => go('#/devices') } },
  { keys: 'g r', does: 'Review the changes', run: { 'g r': reviewChanges } },
  { keys: '/', does: 'Search', run: { '/': () => focus('search') } },
  { keys: 'n', does: 'New session', run: { n: () => beginSession(currentFolder()) } },
  { keys: 'f', does: 'Fork the session', run: { f: fork } },
  { keys: 'm', does: 'Choose the mode', run: { m: () => focus('mode') } },
  { keys: 'e', does: 'Expand or collapse the entry', run: { e: toggleEntry } },
  { keys: '[ ]', does: 'Previous, next changed file', run: { '[': () => moveChange(-1), ']': () => moveChange(1) } },
  { keys: 'c', does: 'Write a prompt; in a review, comment on the hunk', run: { c: () => (focusedReview()?.comment ?? (() => focus('composer')))() } },
  { keys: 'y u', does: 'In a review: keep the hunk, put it back', run: { y: () => inReview('keep'), u: () => inReview('putBack') } },
  { keys: 'v', does: 'In a review: mark the file as viewed', run: { v: () => inReview('viewed') } },
  { keys: '1 to 9', does: 'Answer the focused permission card; m allows more' },
  { keys: '?', does: 'Show this list', run: { '?': () => shell.open({ name: 'help' }) } },
]

const HANDLERS = new Map(SHORTCUTS.flatMap(({ run = {} }) => Object.entries(run)))

/** The number of the answer that a key chooses on a permission card; null for any other key. */
export function answerNumber(key: string): number | null {
  return /^[1-9]$/.test(key) ? Number(key) : null
}

// Times are counted from the load of the page, so that zero would be a moment ago.
const LONG_AGO = -Infinity
let lastEscape = LONG_AGO
let afterG = LONG_AGO

export function listenToKeys(): void {
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return
    const handled = withControl(event) || escaped(event) || (allowed(event) && letter(event))
    if (handled) event.preventDefault()
  })
}

/** Whether the key did something. */
function run(keys: string): boolean {
  const handler = HANDLERS.get(keys)
  return handler !== undefined && handler() !== false
}

function withControl(event: KeyboardEvent): boolean {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return false
  return run(`Ctrl ${event.key.toUpperCase()}`)
}

function escaped(event: KeyboardEvent): boolean {
  if (event.key !== 'Escape') return false
  // The browser would close the dialog too, but report it later: the next key must not be lost.
  if (shell.dialog !== null) {
    shell.set({ dialog: null })
    return true
  }
  const route = currentRoute()
  if (route.screen === 'start' && starts.find(route.key)?.stage === 'starting') {
    cancelStart(route.key)
    return true
  }
  leaveComposer(event)
  const twice = event.timeStamp - lastEscape < 600
  lastEscape = twice ? LONG_AGO : event.timeStamp
  return twice && run('Esc Esc')
}

/** One Escape leads out of a prompt field, to what waits or to the thread; letters are shortcuts there. */
function leaveComposer({ target }: KeyboardEvent): void {
  const field = target instanceof HTMLElement ? target.closest('.composer textarea') : null
  if (field === null) return
  const around = field.closest('.thread, .tile, main')
  ;(around?.querySelector<HTMLElement>('.card[data-request]') ?? around?.querySelector<HTMLElement>('.scroller') ?? around?.closest<HTMLElement>('main'))?.focus()
  if (document.activeElement === field) (field as HTMLElement).blur()
}

function allowed(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || !settings().letters || shell.dialog !== null) return false
  const target = event.target instanceof HTMLElement ? event.target : null
  return target === null || !target.closest('input:not([type=range]), textarea, select, [contenteditable], .xterm')
}

function letter(event: KeyboardEvent): boolean {
  if (event.timeStamp - afterG < 1000) {
    afterG = LONG_AGO
    return run(`g ${event.key}`)
  }
  if (event.key === 'g') afterG = event.timeStamp
  return event.key === 'g' || run(event.key)
}

function togglePalette(): void {
  shell.set({ dialog: shell.dialog?.name === 'palette' ? null : { name: 'palette' } })
}

function stopTurn(): void {
  const session = currentSession()
  if (session !== null) stop(session)
}

function findInTranscript(): boolean {
  if (currentSession() === null) return false
  shell.set({ find: true })
  return true
}

function focus(id: string): void {
  document.getElementById(id)?.focus()
}

function fork(): void {
  const session = currentSession()
  if (session !== null && store.summaries.has(session.id)) shell.open({ name: 'fork', session: session.id })
}

function toggleEntry(): void {
  document.activeElement?.closest('.row')?.querySelector<HTMLElement>('[data-fold]')?.click()
}

function move(by: number): void {
  const review = focusedReview()
  if (review === null) moveRow(by)
  else review.moveHunk(by)
}

function inReview(act: 'keep' | 'putBack' | 'viewed'): boolean {
  const review = focusedReview()
  review?.[act]()
  return review !== null
}

function reviewChanges(): boolean {
  const session = currentSession()
  if (session !== null) go(paths.review(session.id))
  return session !== null
}

/** To the next row of the thread, or the next question of the inbox. */
function moveRow(by: number): void {
  if (moveQuestion(by)) return
  const rows = [...document.querySelectorAll<HTMLElement>('.row, .asked .card')].sort(
    (a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top,
  )
  const current = document.activeElement?.closest<HTMLElement>('.row, .asked .card')
  const at = current ? rows.indexOf(current) + by : by > 0 ? 0 : rows.length - 1
  const next = rows[Math.min(Math.max(at, 0), rows.length - 1)]
  const card = next?.querySelector<HTMLElement>('.card')
  ;(card ?? next)?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

function moveQuestion(by: number): boolean {
  const list = [...document.querySelectorAll<HTMLElement>('.asklist button')]
  const at = list.findIndex((each) => each.getAttribute('aria-current') === 'true')
  list[at + by]?.click()
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.asked .card[data-request]')?.focus())
  return list.length > 0
}

function moveSession(by: number): void {
  const shown = byProject(shownSessions(store.summaries.values(), 'all', '')).flatMap((group) => group.sessions)
  const route = currentRoute()
  const at = shown.findIndex((session) => route.screen === 'session' && session.id === route.id)
  const next = shown[(at + by + shown.length) % Math.max(1, shown.length)]
  if (next !== undefined) go(paths.session(next.id))
}

function moveChange(by: number): void {
  const review = shownReview()
  if (review === null) shell.set({ pane: true, tab: 'changes' })
  else review.moveFile(by)
}

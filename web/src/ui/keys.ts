// The keyboard. Single letters count only outside of fields, and can be turned off.

import { byProject, shownSessions } from '../core/listing'
import { store } from '../live/store'
import { currentSession } from './actions'
import { currentRoute, go, paths } from './route'
import { settings } from './settings'
import { shell } from './shell'
import { stop } from './stop_button'

export const KEYS: [string, string][] = [
  ['Ctrl K', 'Go to, or do'],
  ['Enter', 'Send; Shift Enter begins a new line'],
  ['Esc Esc', 'Stop the turn'],
  ['Ctrl F', 'Find in the transcript'],
  ['j k', 'Next, previous entry'],
  ['J K', 'Next, previous session'],
  ['g i', 'Inbox'],
  ['g g', 'Grid'],
  ['g a', 'Agents'],
  ['g p', 'Policies'],
  ['/', 'Search'],
  ['n', 'New session'],
  ['f', 'Fork'],
  ['m', 'Mode'],
  ['e', 'Fold or unfold the entry'],
  ['[ ]', 'Previous, next change'],
  ['c', 'Write a prompt'],
  ['1 to 4', 'Answer the permission card that has the focus'],
  ['?', 'This list'],
]

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

function withControl(event: KeyboardEvent): boolean {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return false
  if (event.key === 'k') shell.set({ dialog: shell.dialog?.name === 'palette' ? null : { name: 'palette' } })
  else if (event.key === 'f' && currentSession() !== null) shell.set({ find: true })
  else return false
  return true
}

function escaped(event: KeyboardEvent): boolean {
  if (event.key !== 'Escape') return false
  // The browser would close the dialog too, but tell us later: the next key must not be lost till then.
  if (shell.dialog !== null) {
    shell.set({ dialog: null })
    return true
  }
  const twice = event.timeStamp - lastEscape < 600
  lastEscape = twice ? LONG_AGO : event.timeStamp
  const session = currentSession()
  if (twice && session !== null) stop(session)
  return twice
}

function allowed(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || !settings().letters || shell.dialog !== null) return false
  const target = event.target instanceof HTMLElement ? event.target : null
  return target === null || !target.closest('input, textarea, select, [contenteditable], .xterm')
}

function letter(event: KeyboardEvent): boolean {
  if (event.timeStamp - afterG < 1000) {
    afterG = LONG_AGO
    const path = { i: '#/inbox', g: '#/grid', a: '#/agents', p: '#/policies' }[event.key]
    if (path !== undefined) go(path)
    return path !== undefined
  }
  const run = LETTERS[event.key]
  if (event.key === 'g') afterG = event.timeStamp
  run?.()
  return run !== undefined || event.key === 'g'
}

const LETTERS: Record<string, () => void> = {
  j: () => moveRow(1),
  k: () => moveRow(-1),
  J: () => moveSession(1),
  K: () => moveSession(-1),
  '/': () => document.getElementById('search')?.focus(),
  n: () => shell.open({ name: 'new' }),
  f: () => {
    const session = currentSession()
    if (session !== null && store.summaries.has(session.id)) shell.open({ name: 'fork', session: session.id })
  },
  m: () => document.getElementById('mode')?.focus(),
  c: () => document.getElementById('composer')?.focus(),
  e: () => document.activeElement?.closest('.row')?.querySelector<HTMLElement>('[data-fold]')?.click(),
  '[': () => moveChange(-1),
  ']': () => moveChange(1),
  '?': () => shell.open({ name: 'help' }),
}

/** To the next row of the thread, or the next card of the inbox. */
function moveRow(by: number): void {
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

function moveSession(by: number): void {
  const shown = byProject(shownSessions(store.summaries.values(), 'all', '')).flatMap((group) => group.sessions)
  const route = currentRoute()
  const at = shown.findIndex((session) => route.screen === 'session' && session.id === route.id)
  const next = shown[(at + by + shown.length) % Math.max(1, shown.length)]
  if (next !== undefined) go(paths.session(next.id))
}

function moveChange(by: number): void {
  if (shell.tab !== 'changes' || !shell.pane) return shell.set({ pane: true, tab: 'changes' })
  const changes = [...document.querySelectorAll<HTMLElement>('[data-change]')]
  const at = changes.findIndex((change) => change.contains(document.activeElement))
  const next = changes[Math.min(Math.max(at + by, 0), changes.length - 1)]
  next?.focus()
  next?.scrollIntoView({ block: 'start' })
}

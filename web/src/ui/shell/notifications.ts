// Notifications: in the title, in the live regions, and on the desktop if enabled.

import type { TurnEnded } from '../../core/generated/events'
import { titleOf } from '../../core/session/listing'
import { reveal } from '../../core/text/safe_text'
import type { Summary } from '../../live/api'
import { store } from '../../live/store'
import { currentRoute, go, paths } from './route'
import { settings } from './settings'
import { shell } from './shell'

const told = new Set<string>()

export function listenToSessions(): void {
  store.list.subscribe(() => {
    const waiting = store.waiting()
    entitle(store.wanted)
    for (const { session, pending } of waiting) {
      const key = `${session.id}:${pending.id}`
      if (told.has(key)) continue
      told.add(key)
      const what = pending.kind === 'permission' ? pending.title || pending.operation : pending.message
      needsYou(session, reveal(what).slice(0, 120))
    }
    for (const { agent, id, message } of store.outside) {
      const key = `${agent}:${id}`
      if (told.has(key)) continue
      told.add(key)
      shell.announce('urgent', `${reveal(agent)} asks: ${reveal(message).slice(0, 120)}`)
    }
  })
  store.happened.push((session, event) => {
    if (event.type === 'turn_ended') ended(session, event)
  })
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) finishedUnseen = false
    entitle(store.wanted)
  })
}

let finishedUnseen = false

/** How many wait; or that something has finished since one looked away. */
function entitle(waiting: number): void {
  document.title = waiting ? `(${waiting}) Dragoman` : finishedUnseen ? '✓ Dragoman' : 'Dragoman'
}

function needsYou(session: Summary, what: string): void {
  shell.announce('urgent', `Needs you: ${what}`)
  desktop(session, `Needs you: ${what}`)
}

function ended(session: Summary, event: TurnEnded): void {
  const route = currentRoute()
  const here = route.screen === 'session' && route.id === session.id
  const how = howItEnded(event)
  shell.announce('polite', here ? `${how}.` : `${reveal(titleOf(session))}: ${how.toLowerCase()}.`)
  if (document.hidden) finishedUnseen = true
  entitle(store.wanted)
  desktop(session, how)
}

function howItEnded({ error, stopReason, interrupted }: TurnEnded): string {
  if (interrupted) return 'Interrupted'
  if (error != null) return `Failed: ${reveal(error).slice(0, 120)}`
  return stopReason === 'cancelled' ? 'Stopped' : 'Finished'
}

function desktop(session: Summary, what: string): void {
  if (!settings().notify || !document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return
  try {
    const note = new Notification(reveal(titleOf(session)), { body: what, tag: session.id })
    note.onclick = () => {
      window.focus()
      go(paths.session(session.id))
    }
  } catch {
    // Some browsers have notifications only for pages that were installed.
  }
}

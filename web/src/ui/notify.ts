// Being told: in the title, in the live regions, and on the desktop if one asked for it.

import { titleOf } from '../core/listing'
import { reveal } from '../core/visible'
import type { Summary } from '../live/api'
import { store } from '../live/store'
import { currentRoute, go, paths } from './route'
import { settings } from './settings'
import { shell } from './shell'

const told = new Set<string>()

export function listenToSessions(): void {
  store.list.subscribe(() => {
    const waiting = store.waiting()
    document.title = waiting.length ? `(${waiting.length}) Dragoman` : 'Dragoman'
    for (const { session, pending } of waiting) {
      const key = `${session.id}:${pending.id}`
      if (told.has(key)) continue
      told.add(key)
      const what = pending.kind === 'permission' ? pending.title || pending.operation : pending.message
      needsYou(session, reveal(what).slice(0, 120))
    }
  })
  store.happened.push((session, type) => {
    if (type === 'turn_ended') finished(session)
  })
}

function needsYou(session: Summary, what: string): void {
  shell.set({ urgent: `Needs you: ${what}` })
  desktop(session, `Needs you: ${what}`)
}

function finished(session: Summary): void {
  const route = currentRoute()
  const here = route.screen === 'session' && route.id === session.id
  shell.set({ polite: here ? 'Finished.' : `${reveal(titleOf(session))}: finished.` })
  desktop(session, 'Finished')
}

function desktop(session: Summary, what: string): void {
  if (!settings().notify || !document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return
  const note = new Notification(reveal(titleOf(session)), { body: what, tag: session.id })
  note.onclick = () => {
    window.focus()
    go(paths.session(session.id))
  }
}

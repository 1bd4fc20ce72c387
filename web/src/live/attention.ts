// Tells the server whether someone looks at this window, so that it leaves devices in peace meanwhile.

import { call } from './api'
import { store } from './store'

const EVERY_MS = 20_000
/** A window that nobody has touched for so long is not looked at. */
const IDLE_MS = 3 * 60_000

const name = crypto.getRandomValues(new Uint32Array(2)).join('-')
let touched = 0
let told = false

export function reportAttention(): void {
  touched = Date.now()
  for (const kind of ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart']) {
    window.addEventListener(kind, touch, { passive: true, capture: true })
  }
  document.addEventListener('visibilitychange', touch)
  window.addEventListener('pagehide', () => tell(false))
  setInterval(report, EVERY_MS)
  report()
}

function touch(): void {
  touched = Date.now()
  if (looking() !== told) report()
}

function looking(): boolean {
  return store.link === 'online' && !document.hidden && Date.now() - touched < IDLE_MS
}

function report(): void {
  const now = looking()
  if (now || told) tell(now)
}

function tell(now: boolean): void {
  told = now
  call('PUT', '/api/attention', { window: name, looking: now }).catch(() => undefined)
}

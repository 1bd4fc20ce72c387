// Where a notification leads: to the question, with its card in sight and in focus.

import { go } from './route'

const WAIT_MS = 15_000

export function listenToNotifications(): void {
  window.addEventListener('hashchange', land)
  land()
  if (!('serviceWorker' in navigator)) return
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<{ place?: unknown }>) => {
    if (typeof data.place !== 'string' || !data.place.startsWith('#/')) return
    if (location.hash === data.place) land()
    else go(data.place)
  })
}

/** In `#/s/SESSION/q/REQUEST`: the card may take a moment to be there. */
function land(): void {
  const [, request] = /^#\/s\/[^/]+\/q\/([^/]+)$/.exec(location.hash) ?? []
  if (request === undefined) return
  const wanted = decoded(request)
  if (reached(wanted)) return
  const watch = new MutationObserver(() => {
    if (reached(wanted)) stop()
  })
  const stop = () => {
    watch.disconnect()
    clearTimeout(timer)
    window.removeEventListener('hashchange', stop)
  }
  const timer = setTimeout(stop, WAIT_MS)
  watch.observe(document.body, { childList: true, subtree: true })
  window.addEventListener('hashchange', stop, { once: true })
}

function reached(request: string): boolean {
  const card = document.querySelector<HTMLElement>(`[data-request="${CSS.escape(request)}"]`)
  card?.scrollIntoView({ block: 'nearest' })
  card?.focus({ preventScroll: true })
  return card !== null
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

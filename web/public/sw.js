// The service worker: shows pushes, and sends answers that were given in a notification. It caches
// nothing and answers no request of the page.

self.addEventListener('install', () => self.skipWaiting())
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))

self.addEventListener('push', (event) => event.waitUntil(show(event.data)))

function show(sent) {
  let told = {}
  try {
    told = sent.json()
  } catch {
    // A browser must show something for each push.
  }
  const actions = []
  if (told.allow) actions.push({ action: 'allow', title: 'Allow once' })
  if (told.reject) actions.push({ action: 'reject', title: 'Reject' })
  return self.registration.showNotification(told.title || 'Dragoman', {
    body: told.body || 'An agent is waiting for you.',
    tag: told.key || 'dragoman',
    icon: '/icon-192.png',
    badge: '/badge-96.png',
    requireInteraction: told.kind === 'question',
    actions,
    data: told,
  })
}

self.addEventListener('notificationclick', (event) => {
  const told = event.notification.data || {}
  event.notification.close()
  const option = event.action === 'allow' ? told.allow : event.action === 'reject' ? told.reject : undefined
  event.waitUntil(option ? answer(told, option) : land(told))
})

/** Where the page shows the question. */
function placeOf(told) {
  if (!told.session) return '/#/inbox'
  const place = `/#/s/${encodeURIComponent(told.session)}`
  return told.request ? `${place}/q/${encodeURIComponent(told.request)}` : place
}

async function land(told) {
  const place = placeOf(told)
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const [open] = windows
  if (open === undefined) return self.clients.openWindow(place)
  open.postMessage({ place: place.slice(1) })
  return open.focus()
}

async function answer(told, optionId) {
  const path = `/api/sessions/${encodeURIComponent(told.session)}/permissions/${encodeURIComponent(told.request)}`
  let why = 'Cannot reach the server.'
  try {
    const token = await kept('token')
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const reply = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ optionId }), cache: 'no-store' })
    if (reply.ok) return
    why = reply.status === 409 ? 'It was already answered.' : 'The server refused the answer.'
  } catch {
    // Said below.
  }
  await self.registration.showNotification('Your answer was not sent', { body: why, tag: told.key, icon: '/icon-192.png', data: told })
}

/** What the page has put aside for us: there is no other storage that both can read. */
function kept(name) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('dragoman', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('kept')
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      const asking = opening.result.transaction('kept').objectStore('kept').get(name)
      asking.onerror = () => reject(asking.error)
      asking.onsuccess = () => {
        opening.result.close()
        resolve(asking.result)
      }
    }
  })
}

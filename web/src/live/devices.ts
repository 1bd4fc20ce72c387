// Devices: pairing this one, the list of them, and pushes to this browser.

import type { Paired, Pairing, PushShape, PushState, TokenList, TokenShape } from '../core/generated/responses'
import { call } from './api'
import { keep } from './kept'
import { setToken, token } from './token'
import { scriptUrl } from './trusted_html'

export type { Pairing, PushState, TokenShape } from '../core/generated/responses'

export const devices = {
  list: () => call<TokenList>('GET', '/api/tokens'),
  pair: (name: string) => call<Pairing>('POST', '/api/tokens/pairing', { name, address: location.origin }),
  rename: (id: string, name: string) => call<TokenShape>('PATCH', `/api/tokens/${encodeURIComponent(id)}`, { name }),
  revoke: (id: string) => call<TokenShape>('DELETE', `/api/tokens/${encodeURIComponent(id)}`),
  pushState: () => call<PushState>('GET', '/api/push'),
}

/** What went wrong with a code, for the page to say once it is there. */
let failed = ''
export const pairingFailure = () => failed

/** Exchange the code in the address, if there is one, for a token of this device's own. */
export async function takePairing(): Promise<void> {
  const found = /^#pair=([A-Za-z0-9_-]+)/.exec(location.hash)
  if (found?.[1] === undefined) return
  history.replaceState(null, '', location.pathname)
  const headers = { Authorization: `Bearer ${found[1]}`, 'Content-Type': 'application/json' }
  try {
    const reply = await fetch('/api/tokens/paired', { method: 'POST', headers, body: '{}', cache: 'no-store' })
    if (reply.ok) setToken(((await reply.json()) as Paired).token)
    else failed = 'This code was used, or is too old. Make a new one.'
  } catch {
    failed = 'Cannot reach the server.'
  }
}

export interface PushWishes { content: boolean; endings: boolean }

const WISHES = 'dragoman.push'

/** What this browser wants to hear of, if it is subscribed. */
export function wishes(): PushWishes | null {
  try {
    return JSON.parse(localStorage.getItem(WISHES) ?? 'null') as PushWishes | null
  } catch {
    return null
  }
}

/** Why this browser cannot be pushed to; "" if it can. */
export function pushObstacle(): string {
  if (!window.isSecureContext) return 'Browsers allow notifications only over HTTPS. Put an HTTPS proxy in front of the server.'
  if (!('serviceWorker' in navigator) || !('PushManager' in window)) return 'This browser has no push notifications. On an iPhone, add the page to the home screen first.'
  return ''
}

export async function subscribe(wanted: PushWishes): Promise<void> {
  const state = await devices.pushState()
  if (!state.available || state.key == null) throw new Error(state.reason ?? 'This server cannot push.')
  if ((await Notification.requestPermission()) !== 'granted') throw new Error('The browser blocks notifications for this page.')
  const manager = (await registered()).pushManager
  const made = (await fitting(manager, state.key)) ?? (await manager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(state.key) }))
  const { endpoint, keys } = made.toJSON()
  const body = { endpoint, key: keys?.['p256dh'], secret: keys?.['auth'], ...wanted }
  const { id } = await call<PushShape>('POST', '/api/push', body)
  await keep('token', token())
  await keep('subscription', id)
  localStorage.setItem(WISHES, JSON.stringify(wanted))
  localStorage.setItem(`${WISHES}.id`, id)
}

/** The subscription there is, if it was made with the server's key. */
async function fitting(manager: PushManager, key: string): Promise<PushSubscription | null> {
  const found = await manager.getSubscription()
  const had = found?.options.applicationServerKey
  if (found === null || had == null) return found
  if (new Uint8Array(had).join() === bytesOf(key).join()) return found
  await found.unsubscribe()
  return null
}

export async function unsubscribe(): Promise<void> {
  const id = localStorage.getItem(`${WISHES}.id`)
  localStorage.removeItem(WISHES)
  localStorage.removeItem(`${WISHES}.id`)
  await keep('token', null)
  const registration = await navigator.serviceWorker.getRegistration()
  await (await registration?.pushManager.getSubscription())?.unsubscribe()
  if (id !== null) await call('DELETE', `/api/push?id=${encodeURIComponent(id)}`)
}

/** Services change subscriptions now and then, and tokens change: the server has the newest. */
export function renewSubscription(): void {
  const wanted = wishes()
  if (wanted !== null && pushObstacle() === '' && Notification.permission === 'granted') subscribe(wanted).catch(() => undefined)
}

function registered(): Promise<ServiceWorkerRegistration> {
  // The types know nothing of trusted types; the browser insists on one.
  return navigator.serviceWorker.register(scriptUrl('/sw.js') as unknown as string)
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replace(/-/g, '+').replace(/_/g, '/'))
  return Uint8Array.from(plain, (char) => char.charCodeAt(0))
}

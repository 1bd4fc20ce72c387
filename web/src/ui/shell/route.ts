// Where one is, in the fragment of the address: a link to a session or to an entry can be kept.

import { useSyncExternalStore } from 'react'

export type Route =
  | { screen: 'home' | 'inbox' | 'agents' | 'grid' | 'devices' }
  | { screen: 'start'; key: string }
  | { screen: 'policies'; folder: string }
  | { screen: 'session'; id: string; entry: number | null; replay: boolean; review: boolean }
  | { screen: 'search'; query: string }
  | { screen: 'usage'; by: UsageGroup; days: number }
  | { screen: 'races'; id: string }

export const USAGE_GROUPS = ['agent', 'model', 'project', 'session'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]
export const USAGE_DAYS = [7, 30, 90]

export function parseRoute(hash: string): Route {
  const [screen = '', id = '', what = '', entry = ''] = hash.replace(/^#\/?/, '').split('/').map(decode)
  if (screen === 's' && id) {
    return { screen: 'session', id, entry: what === 'e' && /^\d+$/.test(entry) ? Number(entry) : null, replay: what === 'replay', review: what === 'review' }
  }
  if (screen === 'start' && id) return { screen, key: id }
  if (screen === 'search') return { screen, query: id }
  if (screen === 'races') return { screen, id }
  if (screen === 'policies') return { screen, folder: id }
  if (screen === 'usage') {
    return { screen, by: USAGE_GROUPS.find((each) => each === id) ?? 'agent', days: USAGE_DAYS.find((each) => String(each) === what) ?? 30 }
  }
  if (screen === 'inbox' || screen === 'agents' || screen === 'grid' || screen === 'devices') return { screen }
  return { screen: 'home' }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const paths = {
  start: (key: string) => `#/start/${encodeURIComponent(key)}`,
  session: (id: string) => `#/s/${encodeURIComponent(id)}`,
  entry: (id: string, entry: number) => `#/s/${encodeURIComponent(id)}/e/${entry}`,
  replay: (id: string) => `#/s/${encodeURIComponent(id)}/replay`,
  review: (id: string) => `#/s/${encodeURIComponent(id)}/review`,
  policies: (folder: string) => `#/policies/${encodeURIComponent(folder)}`,
  race: (id: string) => `#/races/${encodeURIComponent(id)}`,
  usage: (by: UsageGroup, days: number) => `#/usage/${by}/${days}`,
  search: (query: string) => `#/search/${encodeURIComponent(query)}`,
}

export function go(path: string): void {
  if (location.hash !== path) location.hash = path
}

/** To a place that takes the one of this: one does not come back to it. */
export function replace(path: string): void {
  location.replace(path)
}

export function currentRoute(): Route {
  return parseRoute(location.hash)
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}

export function useRoute(): Route {
  return parseRoute(useSyncExternalStore(subscribe, () => location.hash))
}

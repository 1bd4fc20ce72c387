// What a person chose for this browser.

import { Signal } from '../../live/signal'

export type Theme = 'system' | 'light' | 'dark'

export type Sending = 'queue' | 'steer'

export interface Settings {
  theme: Theme
  /** Single letters as shortcuts. */
  letters: boolean
  notify: boolean
  /** What Enter does while a turn runs; Alt Enter does the other. */
  enter: Sending
  /** Both versions of a file below each other, or side by side where there is room. */
  diffs: 'unified' | 'split'
}

const KEY = 'dragoman.settings'
const DEFAULTS: Settings = { theme: 'system', letters: true, notify: false, enter: 'queue', diffs: 'unified' }

export const settingsChanged = new Signal()

let current: Settings = { ...DEFAULTS, ...stored() }

function stored(): Partial<Settings> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Settings>
  } catch {
    return {}
  }
}

export function settings(): Settings {
  return current
}

export function changeSettings(change: Partial<Settings>): void {
  current = { ...current, ...change }
  localStorage.setItem(KEY, JSON.stringify(current))
  applyTheme()
  settingsChanged.emit()
}

const dark = window.matchMedia('(prefers-color-scheme: dark)')
dark.addEventListener('change', applyTheme)

export function applyTheme(): void {
  const theme = current.theme === 'system' ? (dark.matches ? 'dark' : 'light') : current.theme
  document.documentElement.dataset.theme = theme
}

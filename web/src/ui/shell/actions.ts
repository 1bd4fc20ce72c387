// What can be done from the palette and by keys, in one list.

import type { LiveSession } from '../../live/session'
import { store } from '../../live/store'
import { archive } from '../sidebar/archive'
import { download } from '../common/download'
import type { IconName } from '../common/icons'
import { currentRoute, go, paths } from './route'
import { changeSettings, settings } from './settings'
import { shell, type PaneTab } from './shell'
import { beginSession } from '../start/wish'
import { stop } from '../composer/stop_button'

export interface Action { name: string; icon: IconName; key?: string; run: () => void }

export function actions(): Action[] {
  return [
    ...sessionActions(),
    { name: 'New session', icon: 'plus', key: 'n', run: () => beginSession(currentFolder()) },
    { name: 'Start with all options', icon: 'plus', run: () => shell.open({ name: 'new' }) },
    { name: 'Import a session', icon: 'down', run: () => shell.open({ name: 'import' }) },
    { name: 'Inbox', icon: 'inbox', key: 'g i', run: () => go('#/inbox') },
    { name: 'Grid', icon: 'grid', key: 'g g', run: () => go('#/grid') },
    { name: 'Agents', icon: 'bot', key: 'g a', run: () => go('#/agents') },
    { name: 'Policies', icon: 'shield', key: 'g p', run: () => go('#/policies') },
    { name: 'Usage', icon: 'chart', key: 'g u', run: () => go('#/usage') },
    { name: 'Races', icon: 'grid', run: () => go('#/races') },
    { name: 'Devices and notifications', icon: 'link', key: 'g d', run: () => go('#/devices') },
    { name: 'Theme: light', icon: 'sun', run: () => changeSettings({ theme: 'light' }) },
    { name: 'Theme: dark', icon: 'moon', run: () => changeSettings({ theme: 'dark' }) },
    { name: 'Theme: system', icon: 'half', run: () => changeSettings({ theme: 'system' }) },
    { name: settings().notify ? 'Desktop notifications: off' : 'Desktop notifications: on', icon: 'info', run: () => void toggleNotify() },
    { name: settings().letters ? 'Single-letter shortcuts: off' : 'Single-letter shortcuts: on', icon: 'keyboard', run: () => changeSettings({ letters: !settings().letters }) },
    { name: settings().enter === 'steer' ? 'While a turn runs, Enter queues' : 'While a turn runs, Enter steers', icon: 'send', run: () => changeSettings({ enter: settings().enter === 'steer' ? 'queue' : 'steer' }) },
    { name: 'Keyboard shortcuts', icon: 'keyboard', key: '?', run: () => shell.open({ name: 'help' }) },
  ]
}

export function currentSession(): LiveSession | null {
  const route = currentRoute()
  return route.screen === 'session' ? store.open(route.id) : null
}

/** The project one is in: that of the session that is open. */
export function currentFolder(): string | undefined {
  const route = currentRoute()
  return route.screen === 'session' ? store.summaries.get(route.id)?.cwd || undefined : undefined
}

/** Ask for the session one goes to before anything of it is drawn. */
export function loadAhead(): void {
  window.addEventListener('hashchange', () => void currentSession()?.load())
}

const TABS: [PaneTab, string][] = [['plan', 'Plan'], ['changes', 'Changes'], ['terminals', 'Terminals'], ['raw', 'Raw frames'], ['info', 'Info']]

function sessionActions(): Action[] {
  const session = currentSession()
  if (session === null) return []
  const { id } = session
  return [
    { name: 'Stop the turn', icon: 'stop', key: 'Esc Esc', run: () => stop(session) },
    { name: 'Find in transcript', icon: 'search', key: 'Ctrl F', run: () => shell.set({ find: true }) },
    { name: 'Review the changes', icon: 'read', key: 'g r', run: () => go(paths.review(id)) },
    { name: 'Fork this session', icon: 'fork', key: 'f', run: () => shell.open({ name: 'fork', session: id }) },
    { name: 'Rename this session', icon: 'edit', run: () => shell.open({ name: 'rename', session: id }) },
    ...archiving(id),
    { name: 'Export this session as JSONL', icon: 'down', run: () => void download(id) },
    { name: 'Replay this session', icon: 'play', run: () => go(`#/s/${encodeURIComponent(id)}/replay`) },
    { name: 'Delete this session', icon: 'trash', run: () => shell.open({ name: 'delete', session: id }) },
    ...TABS.map(([tab, word]): Action => ({ name: `Pane: ${word}`, icon: 'pane', run: () => shell.set({ pane: true, tab }) })),
  ]
}

function archiving(id: string): Action[] {
  const session = store.summaries.get(id)
  if (session === undefined) return []
  return [{ name: session.archived ? 'Restore this session from the archive' : 'Archive this session', icon: 'archive', run: () => void archive(session) }]
}

export async function toggleNotify(): Promise<void> {
  if (settings().notify) return changeSettings({ notify: false })
  const allowed = 'Notification' in window && (await Notification.requestPermission()) === 'granted'
  changeSettings({ notify: allowed })
  shell.say(allowed ? 'You will be notified when an agent needs you.' : 'The browser blocks notifications for this page.', !allowed)
}

// The line above everything: find, what runs, what waits, how the page looks.

import { money } from '../../core/text/format'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon, Spinner } from '../common/icons'
import { ErrorBoundary } from '../common/error_boundary'
import { useRoute } from './route'
import { changeSettings, settings, settingsChanged, type Theme } from './settings'
import { shell } from './shell'
import { YoloMark } from '../permissions/yolo'

export function TopBar() {
  useSignal(store.list)
  const route = useRoute()
  const running = store.count('running')
  const waiting = store.wanted
  const here = (screen: string) => (route.screen === screen ? 'page' : undefined)
  return (
    <header className="topbar">
      <button type="button" className="ghost narrow" aria-label="Sessions" onClick={() => shell.set({ drawer: !shell.drawer })}><Icon name="menu" /></button>
      <a className="brand" href="#/" aria-label="Dragoman, home"><img src="./icon.svg" alt="" width="20" height="20" /> <span>Dragoman</span></a>
      <button type="button" className="opener" onClick={() => shell.open({ name: 'palette' })}>
        <Icon name="search" /> <span>Find a session or command…</span> <kbd>{CONTROL} K</kbd>
      </button>
      <span className="space" />
      <LinkState />
      <YoloMark />
      <ErrorBoundary name="cost" of={store.spent} place="counter"><Spent /></ErrorBoundary>
      {running > 0 && <span className="status running counter"><Spinner /> {running} <span className="wide">running</span></span>}
      <a className={`counter ${waiting ? 'waiting' : ''}`} href="#/inbox" aria-current={here('inbox')}>
        <Icon name="inbox" /> <span className="wide">Inbox</span> {waiting > 0 && <span className="badge">{waiting}</span>}
      </a>
      <a className="counter tabbed" href="#/grid" aria-current={here('grid')} title="Grid"><Icon name="grid" /> <span className="wide">Grid</span></a>
      <a className="counter tabbed" href="#/agents" aria-current={here('agents')} title="Agents"><Icon name="bot" /> <span className="wide">Agents</span></a>
      <a className="counter tabbed" href="#/policies" aria-current={here('policies')} title="Policies"><Icon name="shield" /> <span className="wide">Policies</span></a>
      <a className="counter tabbed" href="#/usage" aria-current={here('usage')} aria-label="Usage" title="Usage (g u)"><Icon name="chart" /></a>
      <ThemeButton />
      <button type="button" className="ghost tabbed" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick={() => shell.open({ name: 'help' })}><Icon name="keyboard" /></button>
    </header>
  )
}

export const CONTROL = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl'

function Spent() {
  if (store.spent.length === 0) return null
  const words = store.spent.slice(0, 3).map(({ amount, currency }) => money(amount, currency)).join(' + ')
  return <a className="counter tabbed spent" href="#/usage" title="Cost of your sessions today, as reported by their agents; see Usage">{words} <span className="wide">today</span></a>
}

function LinkState() {
  if (store.link === 'online') return store.away === null ? null : <Away sentence={store.away} />
  const words = { connecting: 'Connecting…', offline: 'Offline, reconnecting…', refused: 'Signed out' }
  return <span className="status waiting counter" role="status"><Icon name="alert" /> {words[store.link]}</span>
}

function Away({ sentence }: { sentence: string }) {
  return (
    <span className="status waiting counter" role="status" title={sentence}>
      <Icon name="alert" /> Database unreachable<span className="hidden">: {sentence}</span>
    </span>
  )
}

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }

function ThemeButton() {
  useSignal(settingsChanged)
  const { theme } = settings()
  const icon = { system: 'half', light: 'sun', dark: 'moon' } as const
  return (
    <button type="button" className="ghost" aria-label={`Theme: ${theme}`} title={`Theme: ${theme}`} onClick={() => changeSettings({ theme: NEXT[theme] })}>
      <Icon name={icon[theme]} />
    </button>
  )
}

// The window: the line on top, sessions on the left, and the screen one is on.

import { lazy, Suspense, useEffect } from 'react'
import { useSignal } from '../live/signal'
import { store } from '../live/store'
import { Agents } from './screens/agents'
import { Help } from './shell/help'
import { Home } from './screens/home'
import { Icon, type IconName } from './common/icons'
import { Inbox } from './screens/inbox'
import { ImportSession, NewSession } from './sidebar/new_session'
import { Palette } from './shell/palette'
import { ErrorBoundary } from './common/error_boundary'
import { Policies } from './screens/policies'
import { Conflicts, Rewind } from './review/restores'
import { ReviewScreen } from './screens/review_screen'
import { useRoute, type Route } from './shell/route'
import { Toasts } from './common/toasts'
import { Search } from './screens/search'
import { Delete, Fork, Kill, Rename } from './sidebar/session_dialogs'
import { SessionScreen } from './screens/session_screen'
import { shell } from './shell/shell'
import { Sidebar } from './sidebar/sidebar'
import { SignIn } from './screens/sign_in'
import { Starting } from './start/starting'
import { beginSession } from './start/wish'
import { SignedOut } from './screens/signed_out'
import { TopBar } from './shell/topbar'

const Grid = lazy(() => import('./screens/grid').then(({ Grid }) => ({ default: Grid })))
const Devices = lazy(() => import('./screens/devices').then(({ Devices }) => ({ default: Devices })))
const Usage = lazy(() => import('./screens/usage').then(({ Usage }) => ({ default: Usage })))
const Races = lazy(() => import('./screens/races').then(({ Races }) => ({ default: Races })))
const Replay = lazy(() => import('./screens/replay').then(({ Replay }) => ({ default: Replay })))

export function App() {
  useSignal(shell.signal)
  const route = useRoute()
  useSignal(store.list)
  if (store.link === 'refused') return <SignedOut />
  return (
    <div className={`app ${shell.drawer ? 'drawer' : ''}`}>
      <a className="skip" href="#content" onClick={(e) => { e.preventDefault(); skip() }}>Skip to content</a>
      <ErrorBoundary name="top bar" place="topbar"><TopBar /></ErrorBoundary>
      <ErrorBoundary name="session list" place="sidebar"><Sidebar /></ErrorBoundary>
      {shell.drawer && <button type="button" className="veil" aria-label="Close the session list" onClick={() => shell.set({ drawer: false })} />}
      <span id="content" className="hidden" />
      <ErrorBoundary name="screen" place="screen" of={location.hash}>
        <Suspense fallback={<main className="screen" />}><Screen route={route} /></Suspense>
      </ErrorBoundary>
      <BottomTabs route={route} />
      <ErrorBoundary name="dialog" of={shell.dialog} onFail={closeFailed}><CurrentDialog /></ErrorBoundary>
      {shell.dialog === null && <Toasts />}
    </div>
  )
}

function Screen({ route }: { route: Route }) {
  switch (route.screen) {
    case 'session':
      if (route.review) return <ReviewScreen key={route.id} id={route.id} />
      return route.replay ? <Replay key={route.id} id={route.id} /> : <SessionScreen key={route.id} id={route.id} entry={route.entry} />
    case 'start': return <Starting key={route.key} id={route.key} />
    case 'inbox': return <Inbox />
    case 'agents': return <Agents />
    case 'policies': return <Policies folder={route.folder} />
    case 'grid': return <Grid />
    case 'devices': return <Devices />
    case 'usage': return <Usage by={route.by} days={route.days} />
    case 'races': return <Races id={route.id} />
    case 'search': return <Search query={route.query} />
    case 'home': return <Home />
  }
}

/** To where one writes, else to the screen. */
function skip() {
  const main = document.querySelector<HTMLElement>('main')
  if (main !== null) main.tabIndex = -1
  ;(document.getElementById('composer') ?? main)?.focus()
}

/** The keys are not to wait for a dialog that is not there. */
function closeFailed() {
  shell.set({ dialog: null })
  shell.say('This dialog could not be displayed.', true)
}

function CurrentDialog() {
  const { dialog } = shell
  if (dialog === null) return null
  switch (dialog.name) {
    case 'new': return <NewSession cwd={dialog.cwd} agent={dialog.agent} prompted={dialog.prompted} />
    case 'import': return <ImportSession />
    case 'help': return <Help />
    case 'palette': return <Palette />
    case 'signin': return <SignIn agent={dialog.agent} settle={dialog.settle} />
    case 'conflicts': return <Conflicts key={Object.keys(dialog.reasons).join('\n')} reasons={dialog.reasons} cwd={dialog.cwd} again={dialog.again} />
    case 'rewind': return <Rewind session={store.open(dialog.session)} turnId={dialog.turnId} />
    case 'kill': return <Kill session={dialog.session} others={dialog.others} />
    default: break
  }
  const session = store.summaries.get(dialog.session)
  if (session === undefined) return <Nothing />
  if (dialog.name === 'rename') return <Rename session={session} />
  return dialog.name === 'fork' ? <Fork session={session} /> : <Delete session={session} />
}

/** A dialog about a session that is not there: the keys are not to wait for it. */
function Nothing() {
  useEffect(() => shell.set({ dialog: null }), [])
  return null
}

const TABS: [string, string, IconName, Route['screen'][]][] = [
  ['#/', 'Sessions', 'menu', ['home', 'session']],
  ['#/inbox', 'Inbox', 'inbox', ['inbox']],
  ['#/new', 'New', 'plus', ['start']],
  ['#/agents', 'Agents', 'bot', ['agents']],
]

function BottomTabs({ route }: { route: Route }) {
  const waiting = store.wanted
  return (
    <nav className="bottomtabs" aria-label="Screens">
      {TABS.map(([path, word, icon, screens]) => (
        <a key={path} href={path} aria-current={screens.includes(route.screen) ? 'page' : undefined} onClick={(event) => {
          // The list lies over what one is in.
          if (path === '#/' || path === '#/new') event.preventDefault()
          if (path === '#/new') return beginSession()
          shell.set({ drawer: path === '#/' ? !shell.drawer : false })
        }}>
          <Icon name={icon} /> {word}{path === '#/inbox' && waiting > 0 && <span className="badge">{waiting}</span>}
        </a>
      ))}
      <button type="button" onClick={() => shell.open({ name: 'palette' })}><Icon name="dots" /> More</button>
    </nav>
  )
}

// Where one lands with nothing chosen: what this is, and the one thing to do next.

import { useSignal } from '../live/signal'
import { store } from '../live/store'
import { Icon } from './icons'
import { shell } from './shell'

export function Home() {
  useSignal(store.list)
  const any = store.summaries.size > 0
  return (
    <main className="screen home" aria-label="Start">
      <img src="./icon.svg" alt="" width="48" height="48" />
      <h1>{any ? 'Choose a session' : 'Start your first session'}</h1>
      <p className="lead">{any
        ? 'Your sessions are in the list, by project. What needs you is in the inbox.'
        : 'Pick an agent and a folder. The built-in demo agent needs no key: it plans, edits a file, asks for permission and runs a command, so that you see how all of it looks.'}</p>
      <div className="options">
        <button type="button" className="primary" onClick={() => shell.open({ name: 'new' })}><Icon name="plus" /> New session</button>
        <button type="button" onClick={() => shell.open({ name: 'import' })}>Import</button>
        <a className="button" href="#/agents"><Icon name="bot" /> Agents</a>
      </div>
      <p className="quiet"><kbd>n</kbd> new session · <kbd>?</kbd> all shortcuts</p>
    </main>
  )
}

/** No token, or one the server does not know. */
export function SignedOut({ enter }: { enter: (token: string) => void }) {
  return (
    <main className="screen home" aria-label="Signed out">
      <img src="./icon.svg" alt="" width="48" height="48" />
      <h1>Signed out</h1>
      <p className="lead">Open the address that <code>dragoman serve</code> printed: it ends in <code>#token=…</code>. Or paste that token here.</p>
      <form className="searchform" onSubmit={(event) => {
        event.preventDefault()
        enter(String(new FormData(event.currentTarget).get('token') ?? ''))
      }}>
        <input name="token" type="password" autoComplete="off" aria-label="Token" required autoFocus />
        <button type="submit" className="primary">Sign in</button>
      </form>
    </main>
  )
}

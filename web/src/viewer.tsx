// A session in a file: the whole thread, drawn as the page draws it, with nothing to answer and no server.

import { createRoot } from 'react-dom/client'
import type { Event } from './core/generated/events'
import { moment, plural } from './core/text/format'
import { PastSession } from './live/past_session'
import { ErrorBoundary } from './ui/common/error_boundary'
import { Plain } from './ui/common/plain_text'
import { applyTheme } from './ui/shell/settings'
import { EntryView } from './ui/thread/entry_view'
import { SubagentView, nesting, subagentsAfter } from './ui/thread/subagents'
import './styles/index.css'
import './styles/viewer.css'

interface Exported {
  session: { id: string; title: string; agent: string; cwd: string; createdAt: number }
  events: Event[]
  /** What was removed, and how often. Null: nothing was looked for. */
  removed: Record<string, number> | null
}

function Viewer({ file }: { file: Exported }) {
  const session = new PastSession(file.session.id)
  session.show(file.events, file.events.length)
  const { state } = session
  const children = subagentsAfter(state)
  return (
    <div className="viewer">
      <header className="head">
        <h1><Plain text={file.session.title} /></h1>
        <p className="facts">
          <Plain text={file.session.agent} /> · <Plain text={file.session.cwd} /> · {moment(file.session.createdAt)}
        </p>
        <p className="facts">{removedWords(file.removed)}</p>
      </header>
      <main aria-label="Transcript">
        {session.first > 0 && <p className="facts">The first {plural(session.first, 'row')} of this long session are not shown.</p>}
        {state.entries.map((entry, at) => (
          <article key={at} className="row" data-depth={nesting(state, at) || undefined}>
            <ErrorBoundary name="entry" of={entry}><EntryView session={session} entry={entry} place={session.first + at} /></ErrorBoundary>
            {children.get(at)?.map((child) => <ErrorBoundary key={child.sessionId} name="subagent" of={child}><SubagentView session={session} child={child} /></ErrorBoundary>)}
          </article>
        ))}
      </main>
      <footer className="facts">A session of Dragoman, as a file. It loads nothing and sends nothing.</footer>
    </div>
  )
}

function removedWords(removed: Exported['removed']): string {
  if (removed === null) return 'This file was not searched for secrets.'
  const kinds = Object.entries(removed)
  const count = kinds.reduce((sum, [, each]) => sum + each, 0)
  if (count === 0) return 'It was searched for secrets; none was found.'
  return `${plural(count, 'secret')} removed: ${kinds.map(([kind, each]) => `${kind} (${each})`).join(', ')}.`
}

const data = document.getElementById('session')
const root = document.getElementById('root')
if (data !== null && root !== null) {
  applyTheme()
  createRoot(root).render(<ErrorBoundary name="page"><Viewer file={JSON.parse(data.textContent ?? '') as Exported} /></ErrorBoundary>)
}

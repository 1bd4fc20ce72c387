// All that the session changed, file by file. What Dragoman wrote is certain and can be undone; what
// an agent wrote by itself is as it told us. A comment on a line becomes part of the next prompt.

import { useEffect, useState } from 'react'
import type { Diff } from '../core/content'
import type { DiffRow } from '../core/diff'
import { plural, within } from '../core/format'
import { ApiError, sessions, type FileChange } from '../live/api'
import type { LiveSession } from '../live/session'
import { useSignal } from '../live/signal'
import { DiffView } from './diff_view'
import { addToDraft } from './drafts'
import { Icon } from './icons'
import { Plain } from './plain'
import { attempt, shell } from './shell'

export function ChangesView({ session }: { session: LiveSession }) {
  const version = useSignal(session.facts)
  const [changes, setChanges] = useState<FileChange[] | null>(null)
  const [failure, setFailure] = useState('')
  const [stamp, setStamp] = useState(0)
  useEffect(() => {
    const timer = setTimeout(() => {
      sessions.changes(session.id).then((told) => setChanges(told.changes), (error: Error) => setFailure(error.message))
    }, changes === null ? 0 : 400)
    return () => clearTimeout(timer)
  }, [session, version, stamp])
  if (changes === null) return <p className="quiet">{failure ? <Plain text={failure} /> : 'Looking…'}</p>
  if (changes.length === 0) return <p className="empty">Nothing was changed. Edits of this session are collected here, file by file.</p>
  const ours = changes.filter((change) => change.source === 'host')
  return (
    <div className="changes">
      <div className="changeshead">
        <strong>{plural(changes.length, 'file')} changed</strong>
        <span className="space" />
        {ours.length > 0 && <button type="button" onClick={() => void revert(session, () => setStamp(stamp + 1))}><Icon name="undo" /> Revert</button>}
      </div>
      {changes.map((change) => <Change key={`${change.source}:${change.path}`} session={session} change={change} />)}
    </div>
  )
}

function Change({ session, change }: { session: LiveSession; change: FileChange }) {
  const [line, setLine] = useState<DiffRow | null>(null)
  const { cwd } = session.state
  const diff: Diff = { type: 'diff', path: change.path, old_text: change.existed ? change.before ?? '' : null, new_text: change.after ?? '' }
  return (
    <section className="change" data-change="" tabIndex={-1}>
      {change.source === 'agent' && <p className="quiet"><Icon name="info" /> As the agent told it; Dragoman did not write it.</p>}
      {change.after === null && change.before === null
        ? <pre className="patch"><Plain text={change.diff} lines /></pre>
        : <DiffView diff={diff} cwd={cwd} onLine={setLine} />}
      {line !== null && <Comment row={line} path={within(change.path, cwd)} session={session.id} done={() => setLine(null)} />}
    </section>
  )
}

function Comment({ row, path, session, done }: { row: DiffRow; path: string; session: string; done: () => void }) {
  const [text, setText] = useState('')
  const add = () => {
    if (text.trim()) addToDraft(session, `${path}:${row.new ?? row.old ?? ''}\n> ${row.text.trim()}\n${text.trim()}`)
    done()
  }
  return (
    <form className="comment" onSubmit={(event) => { event.preventDefault(); add() }}>
      <label>Comment on line {row.new ?? row.old}<input autoFocus value={text} onChange={(e) => setText(e.target.value)} placeholder="Becomes part of your next prompt" /></label>
      <button type="submit">Add</button>
      <button type="button" className="ghost" onClick={done}>Cancel</button>
    </form>
  )
}

async function revert(session: LiveSession, done: () => void): Promise<void> {
  if (!window.confirm('Put all files that Dragoman wrote in this session back as they were?')) return
  try {
    const { paths } = await sessions.revert(session.id)
    shell.say(`${plural(paths.length, 'file')} put back.`)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'conflict') return shell.fail(error)
    if (!window.confirm(`${error.message}\n\nPut them back all the same?`)) return
    await attempt(sessions.revert(session.id, true))
  }
  done()
}

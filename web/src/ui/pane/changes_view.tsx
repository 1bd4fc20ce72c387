// All that the session changed, file by file, or what one turn did. What Dragoman wrote is certain and
// can be undone; what an agent wrote itself is as reported. A comment on a line becomes part of
// the next prompt.

import { useMemo, useState } from 'react'
import type { Diff } from '../../core/generated/content'
import type { DiffRow } from '../../core/diff'
import { plural, within } from '../../core/format'
import { entryText } from '../../core/state'
import { reveal } from '../../core/safe_text'
import { ApiError, sessions, type FileChange, type FileChanges } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { useRefetch, type Refetched } from '../common/refetch'
import { DiffView } from '../thread/diff_view'
import { addToDraft } from '../composer/drafts'
import { Icon } from '../common/icons'
import { useDraftInMemory } from '../common/drafts_in_memory'
import { Plain } from '../common/plain_text'
import { shell } from '../shell/shell'

export type AllChanges = Refetched<FileChanges>

/** `all` is what the whole session changed, which the tab counts. */
export function ChangesView({ session, all }: { session: LiveSession; all: AllChanges }) {
  const version = useSignal(session.facts)
  const [turn, setTurn] = useState('')
  const ofTurn = useRefetch(`${session.id}:${turn}`, turn ? version : 0, async () => (turn ? sessions.changes(session.id, turn) : null))
  const asked = turn ? ofTurn : all
  const again = () => {
    all.again()
    if (turn) ofTurn.again()
  }
  const changes = asked.value?.changes ?? null
  const ours = changes?.filter((change) => change.source === 'host') ?? []
  const undo = (what: Undo) => void revert(session, what, again)
  const wholly = turn ? { turnId: turn, words: 'all files Dragoman wrote in this turn' } : { words: 'all files Dragoman wrote in this session' }
  return (
    <div className="changes">
      <TurnChoice session={session} turn={turn} choose={setTurn} />
      {changes === null && <p className="quiet">{asked.failure ? <Plain text={asked.failure} /> : 'Loading…'}</p>}
      {changes?.length === 0 && <p className="empty">{turn ? 'No changes in this turn.' : 'No changes yet. Files edited in this session appear here.'}</p>}
      {changes !== null && changes.length > 0 && (
        <div className="changeshead">
          <strong>{plural(changes.length, 'file')} changed</strong>
          <span className="space" />
          {ours.length > 0 && <button type="button" onClick={() => undo(wholly)}><Icon name="undo" /> {turn ? 'Revert turn' : 'Revert all'}</button>}
        </div>
      )}
      {changes?.map((change) => (
        <Change key={`${change.source}:${change.path}`} session={session} change={change} undo={() => undo({ ...(turn && { turnId: turn }), paths: [change.path], words: within(change.path, session.state.cwd) })} />
      ))}
      {asked.value?.complete === false && <p className="quiet">Some changed files are not listed: there are too many.</p>}
    </div>
  )
}

/** The prompts of the session: each began a turn. */
function TurnChoice({ session, turn, choose }: { session: LiveSession; turn: string; choose: (turn: string) => void }) {
  const turns = turnsOf(session)
  if (turns.length < 2) return null
  return (
    <label className="turnchoice"><span className="quiet">Changed in</span>
      <select value={turn} onChange={(event) => choose(event.target.value)}>
        <option value="">the whole session</option>
        {turns.map(([id, words]) => <option key={id} value={id}>{reveal(words)}</option>)}
      </select>
    </label>
  )
}

const TURNS = 100

function turnsOf({ state }: LiveSession): [string, string][] {
  const turns: [string, string][] = []
  let last: string | null = null
  for (const entry of state.entries) {
    if (entry.type === 'user' && entry.turnId !== null && entry.turnId !== last) {
      last = entry.turnId
      turns.push([entry.turnId, entryText(entry).slice(0, 60) || 'a prompt without text'])
    }
  }
  return turns.slice(-TURNS).reverse()
}

function Change({ session, change, undo }: { session: LiveSession; change: FileChange; undo: () => void }) {
  const [comment, setComment] = useDraftInMemory<Begun | null>(`comment:${session.id}:${change.path}`, null)
  const { cwd } = session.state
  const { path, existed, before, after } = change
  const diff = useMemo((): Diff => ({ type: 'diff', path, oldText: existed ? before ?? '' : null, newText: after ?? '' }), [path, existed, before, after])
  const name = within(path, cwd)
  return (
    <section className="change" data-change="" tabIndex={-1} aria-label={reveal(name)}>
      {change.source === 'agent' && <p className="quiet"><Icon name="info" /> As reported by the agent; Dragoman did not write it.</p>}
      {change.source === 'imported' && <p className="quiet"><Icon name="info" /> Imported: reported by the file this session came from.</p>}
      {after === null && before === null
        ? <pre className="patch"><Plain text={change.diff} lines /></pre>
        : <DiffView diff={diff} cwd={cwd} onLine={(row) => setComment({ row, text: '' })} />}
      {comment !== null && <Comment comment={comment} path={name} session={session.id} change={setComment} />}
      {change.source === 'host' && <button type="button" className="ghost small" onClick={undo}><Icon name="undo" /> Revert file</button>}
    </section>
  )
}

/** A comment that is being written. */
interface Begun { row: DiffRow; text: string }

interface CommentProps { comment: Begun; path: string; session: string; change: (comment: Begun | null) => void }

function Comment({ comment: { row, text }, path, session, change }: CommentProps) {
  const add = () => {
    if (text.trim()) addToDraft(session, `${path}:${row.new ?? row.old ?? ''}\n> ${row.text.trim()}\n${text.trim()}`)
    change(null)
  }
  return (
    <form className="comment" onSubmit={(event) => { event.preventDefault(); add() }}>
      <label>Comment on line {row.new ?? row.old}<input autoFocus value={text} onChange={(e) => change({ row, text: e.target.value })} placeholder="Added to your next prompt" /></label>
      <button type="submit">Add</button>
      <button type="button" className="ghost" onClick={() => change(null)}>Cancel</button>
    </form>
  )
}

interface Undo { turnId?: string; paths?: string[]; words: string }

async function revert(session: LiveSession, { words, ...what }: Undo, done: () => void): Promise<void> {
  if (!window.confirm(`Revert ${reveal(words)}?`)) return
  try {
    told((await sessions.revert(session.id, what)).paths)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'conflict') return shell.fail(error)
    if (!window.confirm(`${reveal(error.message, true)}\n\nRevert anyway?`)) return
    try {
      told((await sessions.revert(session.id, { ...what, force: true })).paths)
    } catch (refused) {
      shell.fail(refused)
    }
  }
  done()
}

/** It may have been put back elsewhere in the meantime, be of the session this one was forked from, or imported. */
function told(paths: string[]): void {
  if (paths.length) shell.say(`${plural(paths.length, 'file')} reverted.`)
  else shell.say('Nothing was reverted: the earlier content is unknown, or it was already reverted.', true)
}

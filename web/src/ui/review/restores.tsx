// The way back: changes are put back, a session is rewound, and either can be undone. Where someone changed the
// same files since, a person chooses for each of them.

import { useState, type FormEvent } from 'react'
import { plural, within } from '../../core/text/format'
import { runningTurn } from '../../core/session/state'
import { reveal } from '../../core/text/safe_text'
import type { RewindAnswer } from '../../core/generated/responses'
import { ApiError, sessions, type Choices, type Undoing } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon, Spinner } from '../common/icons'
import { Modal } from '../common/modal'
import { Plain } from '../common/plain_text'
import { giveBack } from '../composer/drafts'
import { go, paths } from '../shell/route'
import { shell } from '../shell/shell'
import { changeReview, pendingReview, type Undone } from './pending_review'

/** What is undone, as it is remembered. */
export type Subject = Pick<Undone, 'path' | 'start' | 'end'>

/** What is put back, a hunk or a file, is drawn by this `key`. */
export async function putBack(session: LiveSession, what: Undoing, subject: Subject, key: string, done: () => void): Promise<void> {
  try {
    const { paths: restored, restoreId, waits, kept } = await sessions.revert(session.id, what)
    if (waits) {
      if (restoreId) remember(session.id, { ...subject, restoreId, session: session.id, more: 0, waits: key })
      shell.say('A turn is running. This is put back when it ends.')
      return
    }
    if (restored.length === 0 && !kept?.length) shell.say('Nothing was put back: the earlier content is unknown, or it is already there.', true)
    else shell.say(restored.length ? `${plural(restored.length, 'file')} put back.` : 'Nothing was put back: all files stay as they are.')
    if (restoreId && restored.length) remember(session.id, { ...subject, path: subject.path || restored[0] || '', restoreId, session: session.id, more: subject.path ? 0 : restored.length - 1 })
    done()
  } catch (error) {
    const reasons = reasonsOf(error)
    if (reasons === null) shell.fail(error)
    else shell.open({ name: 'conflicts', reasons, cwd: session.state.cwd, again: (choices) => void putBack(session, { ...what, choices: { ...what.choices, ...choices } }, subject, key, done) })
  }
}

/** What waited for the end of a turn: now that there is none, it is done, or never will be. The thread says why. */
export async function settleRestores(session: LiveSession): Promise<void> {
  for (const each of pendingReview(session.id).undone.filter(({ waits }) => waits !== undefined)) {
    const told = await sessions.changes(each.session, each.restoreId).catch(() => null)
    if (told === null) continue
    const { waits: _, ...settled } = each
    const [first, ...rest] = told.tracked ? told.changes : []
    const done = first && { ...settled, path: each.path || first.path, more: each.path ? 0 : rest.length }
    changeReview(session.id, { undone: pendingReview(session.id).undone.flatMap((now) => (now.restoreId === each.restoreId ? done ?? [] : now)) })
  }
}

function remember(session: string, undone: Undone): void {
  changeReview(session, { undone: [...pendingReview(session).undone, undone] })
}

/** Undo a restore: of this session, or of the one that this continues. */
export async function undoRestore(session: LiveSession, undone: Undone, done: () => void, choices: Choices = {}): Promise<void> {
  try {
    const { waits } = await sessions.revert(undone.session, { turnId: undone.restoreId, choices })
    changeReview(session.id, { undone: pendingReview(session.id).undone.filter(({ restoreId }) => restoreId !== undone.restoreId) })
    shell.say(waits ? 'A turn is running. The changes return when it ends.' : 'The changes are there again.')
    done()
  } catch (error) {
    const reasons = reasonsOf(error)
    if (reasons === null) shell.fail(error)
    else shell.open({ name: 'conflicts', reasons, cwd: session.state.cwd, again: (chosen) => void undoRestore(session, undone, done, { ...choices, ...chosen }) })
  }
}

/** Why files cannot be put back, by path; null if it failed otherwise. */
function reasonsOf(error: unknown): Record<string, string> | null {
  if (!(error instanceof ApiError) || error.code !== 'conflict') return null
  const { reasons } = (error.detail ?? {}) as { reasons?: Record<string, string> }
  // A hunk that is no longer there is nothing to choose.
  const files = Object.entries(reasons ?? {}).filter(([path]) => path.startsWith('/'))
  return files.length ? Object.fromEntries(files) : null
}

interface ConflictsProps { reasons: Record<string, string>; cwd: string; again: (choices: Choices) => void }

/** Nothing was done yet. */
export function Conflicts({ reasons, cwd, again }: ConflictsProps) {
  const files = Object.entries(reasons)
  const [choices, setChoices] = useState<Choices>({})
  const all = (choice: Choices[string]) => setChoices(Object.fromEntries(files.map(([path]) => [path, choice])))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    shell.set({ dialog: null })
    again(choices)
  }
  return (
    <Modal title="Changed since" className="conflicts">
      <form className="stack" onSubmit={submit}>
        <p>Nothing was put back yet. {files.length === 1 ? 'This file was' : `These ${files.length} files were`} changed by someone else in the meantime. {files.length === 1 ? 'Choose what becomes of it.' : 'Choose for each.'}</p>
        {files.length > 1 && (
          <div className="options">
            <button type="button" className="small" onClick={() => all('keep')}>Keep all</button>
            <button type="button" className="small" onClick={() => all('restore')}>Put all back</button>
          </div>
        )}
        <ul className="conflictlist">
          {files.map(([path, reason]) => (
            <li key={path}>
              <fieldset className="field">
                <legend><code><Plain text={within(path, cwd)} /></code> <small><Plain text={reason} /></small></legend>
                {(['keep', 'restore'] as const).map((choice) => (
                  <label key={choice} className="check">
                    <input type="radio" name={path} checked={choices[path] === choice} onChange={() => setChoices({ ...choices, [path]: choice })} />
                    {choice === 'keep' ? 'Keep it as it is now' : 'Put the earlier content over it'}
                  </label>
                ))}
              </fieldset>
            </li>
          ))}
        </ul>
        <div className="options"><button type="submit" className="primary" disabled={files.some(([path]) => choices[path] === undefined)}>Continue</button></div>
      </form>
    </Modal>
  )
}

/** Back to before one of the person's messages. */
export function Rewind({ session, turnId }: { session: LiveSession; turnId: string }) {
  useSignal(session.facts)
  const [files, setFiles] = useState(true)
  const [conversation, setConversation] = useState(true)
  const [summary, setSummary] = useState(false)
  const [at, setAt] = useState(false)
  const busy = runningTurn(session.state) !== null
  const later = turnsSince(session, turnId)
  const rewind = (event: FormEvent) => {
    event.preventDefault()
    setAt(true)
    void rewound(session, { turnId, files, conversation, summary: conversation && summary }, () => setAt(false))
  }
  return (
    <Modal title="Rewind to before this message" className="rewind">
      <form className="stack" onSubmit={rewind}>
        <label className="check"><input type="checkbox" checked={files} onChange={(e) => setFiles(e.target.checked)} data-first="" /> <strong>Files</strong></label>
        <p className="quiet">What {later > 1 ? `this turn and the ${later - 1 === 1 ? 'one' : plural(later - 1, 'turn')} after it` : 'this turn'} did in the folder is undone. What you changed yourself stays; if both changed the same lines, you choose. The rewind can be undone.</p>
        <label className="check"><input type="checkbox" checked={conversation} onChange={(e) => setConversation(e.target.checked)} /> <strong>Conversation</strong></label>
        <p className="quiet">A new session begins, with this message in its prompt field. If the agent can fork its conversation here, it remembers what was said before; otherwise it remembers nothing. This session stays as it is.</p>
        {conversation && <label className="check"><input type="checkbox" checked={summary} onChange={(e) => setSummary(e.target.checked)} /> If it remembers nothing, tell it in brief what was said before</label>}
        {busy && <p className="notice warning"><Icon name="alert" /> A turn is running. Stop it, or wait for its end.</p>}
        <div className="options"><button type="submit" className="primary" disabled={at || busy || !(files || conversation)}>{at && <Spinner />} Rewind</button></div>
      </form>
    </Modal>
  )
}

function turnsSince({ state }: LiveSession, turnId: string): number {
  const turns = [...new Set(state.entries.flatMap((entry) => (entry.type === 'user' && entry.turnId !== null ? [entry.turnId] : [])))]
  return Math.max(1, turns.length - turns.indexOf(turnId))
}

async function rewound(session: LiveSession, what: Parameters<typeof sessions.rewind>[1], failed: () => void): Promise<void> {
  try {
    const told = await sessions.rewind(session.id, what)
    shell.set({ dialog: null })
    const files = told.paths.length > 0 ? `${plural(told.paths.length, 'file')} put back.` : 'No file had changed since.'
    const restored = what.files ? files : ''
    if (told.restoreId && told.paths.length) {
      remember(told.session, { restoreId: told.restoreId, session: session.id, path: told.paths[0] ?? '', start: 0, end: 0, more: told.paths.length - 1 })
    }
    if (told.session !== session.id) {
      giveBack(told.session, told.prompt)
      await store.refresh()
      go(paths.session(told.session))
    }
    shell.say([remembered(told), restored].filter(Boolean).join(' '))
  } catch (error) {
    failed()
    const reasons = reasonsOf(error)
    if (reasons === null) shell.fail(error)
    else shell.open({ name: 'conflicts', reasons, cwd: session.state.cwd, again: (choices) => void rewound(session, { ...what, choices: { ...what.choices, ...choices } }, () => undefined) })
  }
}

/** What the agent still knows in the session that continues. */
function remembered({ continuity, reason }: RewindAnswer): string {
  if (continuity === 'continued') return 'The agent forked its conversation and remembers what was said before.'
  return continuity === 'reset' ? `The agent remembers nothing: ${reason ?? 'a new conversation has begun'}.` : ''
}

/** What a restore was about, in few words. */
export function undoneWords({ path, start, end, more }: Undone, cwd: string): string {
  const lines = start === 0 ? '' : end > start ? ` lines ${start}–${end}` : ` line ${start}`
  return `${reveal(within(path, cwd))}${lines}${more > 0 ? ` and ${plural(more, 'more file')}` : ''}`
}

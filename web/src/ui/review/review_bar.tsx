// The pending review: what was said and put back so far, and the button that makes one prompt of it.

import { useState } from 'react'
import { anchorOf, hunksOf } from '../../core/changes/hunks'
import { plural, within } from '../../core/text/format'
import { runningTurn } from '../../core/session/state'
import type { FileChange } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { store } from '../../live/store'
import { addToDraft } from '../composer/drafts'
import { delivered } from '../composer/composer'
import { Icon, Spinner } from '../common/icons'
import { go, paths } from '../shell/route'
import { attemptSignedIn, shell } from '../shell/shell'
import { CommentCard } from './comments'
import { changeReview, pendingReview, promptOf, reviewSent, untold } from './pending_review'
import { undoneWords, undoRestore } from './restores'

interface Props { session: LiveSession; changes: FileChange[]; wide: boolean; show: (path: string) => void; again: () => void }

/** `changes` are all of the session, whichever turn one looks at. */
export function ReviewBar({ session, changes, wide, show, again }: Props) {
  const [open, setOpen] = useState(false)
  const [sending, setSending] = useState(false)
  const review = pendingReview(session.id)
  const { comments, undone, text } = review
  const { cwd } = session.state
  const fresh = untold(review).filter((each) => each.session === session.id).length
  if (comments.length === 0 && undone.length === 0 && text === '') return null
  const busy = runningTurn(session.state) !== null
  const nothing = comments.length === 0 && fresh === 0 && text.trim() === ''
  const take = () => {
    const prompt = promptOf(session.id, changes, cwd)
    reviewSent(session.id)
    setOpen(false)
    return prompt
  }
  const send = async () => {
    const prompt = promptOf(session.id, changes, cwd)
    setSending(true)
    const agent = session.state.agent || (store.summaries.get(session.id)?.agent ?? '')
    const accepted = await attemptSignedIn(agent, () => delivered(session, { text: prompt }, 'queue'))
    setSending(false)
    if (accepted !== null) {
      take()
      shell.say(accepted.delayed ?? (busy ? 'Review queued for the next turn.' : 'Review sent.'))
      if (wide) go(paths.session(session.id))
    } else if (session.forgotten) write()
  }
  const write = () => {
    addToDraft(session.id, take())
    if (wide) go(paths.session(session.id))
    shell.set({ writing: session.id })
  }
  return (
    <section className={`reviewbar ${open ? 'open' : ''}`} aria-label="Pending review">
      {open && (
        <div className="reviewbody">
          <label className="field"><span className="label">About all of it <span className="quiet">(optional)</span></span>
            <textarea rows={2} value={text} onChange={(event) => changeReview(session.id, { text: event.target.value })} placeholder="Please address these comments on your changes." />
          </label>
          {comments.map((comment) => {
            const change = changes.find(({ path }) => path === comment.path)
            const anchor = anchorOf(comment, change ? hunksOf(change) : [], change?.after ?? null)
            return <CommentCard key={comment.id} session={session.id} comment={comment} anchor={{ ...anchor, row: null }} name={within(comment.path, cwd)} show={() => show(comment.path)} />
          })}
          {undone.length > 0 && (
            <ul className="undone" aria-label="Put back">
              {undone.map((each) => (
                <li key={each.restoreId}>
                  <Icon name="undo" /> <span>Put back: <bdi>{undoneWords(each, cwd)}</bdi></span>
                  <span className="space" />
                  {each.waits === undefined
                    ? <button type="button" className="ghost small" onClick={() => void undoRestore(session, each, again)}>Undo</button>
                    : <span className="tag high">after the turn</span>}
                </li>
              ))}
            </ul>
          )}
          {fresh > 0 && <p className="quiet">The review says what was put back.</p>}
        </div>
      )}
      <div className="reviewline">
        <button type="button" className="ghost" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Icon name="chevron" className={open ? 'turned' : 'up'} /> {words(comments.length, undone.length)}
        </button>
        <span className="space" />
        {!nothing && <button type="button" className="ghost" title="Write the review into the prompt field, to be edited there" onClick={write}>Edit as prompt</button>}
        {!nothing && <button type="button" className="primary" disabled={sending} onClick={() => void send()}>{sending ? <Spinner /> : <Icon name={busy ? 'clock' : 'send'} />} {busy ? 'Queue review' : 'Send review'}</button>}
      </div>
    </section>
  )
}

function words(comments: number, undone: number): string {
  const said = [comments > 0 && plural(comments, 'comment'), undone > 0 && `${undone} put back`].filter(Boolean)
  return said.length ? said.join(', ') : 'Pending review'
}

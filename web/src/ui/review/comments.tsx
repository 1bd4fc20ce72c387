// Comments on changed lines: those that wait to be sent, and the one that is being written.

import { useState, type KeyboardEvent } from 'react'
import { place as placeWords } from '../../core/changes/review'
import type { Anchor, Place } from '../../core/changes/hunks'
import { visibleLine } from '../../core/text/safe_text'
import { useDraftInMemory } from '../common/drafts_in_memory'
import { Icon } from '../common/icons'
import { dropComment, editComment, newComment, type PendingComment } from './pending_review'

/** A comment that is being written. */
export interface Begun { place: Place; text: string }

export function useBegun(session: string, path: string): [Begun | null, (begun: Begun | null) => void] {
  return useDraftInMemory<Begun | null>(`comment:${session}:${path}`, null)
}

export function linesWords({ side, start, end }: Pick<Place, 'side' | 'start' | 'end'>): string {
  if (start === 0) return 'the file'
  const lines = end > start ? `lines ${start} to ${end}` : `line ${start}`
  return side === 'old' ? `${lines}, before the change` : lines
}

interface FieldProps { label: string; text: string; word: string; change: (text: string) => void; save: () => void; cancel: () => void }

function CommentField({ label, text, word, change, save, cancel }: FieldProps) {
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      save()
    }
    if (event.key === 'Escape' && text.trim() === '') {
      event.stopPropagation()
      cancel()
    }
  }
  return (
    <form className="commentform" onSubmit={(event) => { event.preventDefault(); save() }}>
      <label><span>{label}</span><textarea autoFocus rows={3} value={text} onChange={(event) => change(event.target.value)} onKeyDown={onKey} placeholder="Sent with your review" /></label>
      <div className="options">
        <button type="submit" className="primary small" disabled={text.trim() === ''} title="Ctrl Enter">{word}</button>
        <button type="button" className="ghost small" onClick={cancel}>Cancel</button>
      </div>
    </form>
  )
}

interface NewProps { session: string; path: string; begun: Begun; change: (begun: Begun | null) => void }

export function NewComment({ session, path, begun, change }: NewProps) {
  const save = () => {
    if (begun.text.trim() === '') return
    newComment(session, path, begun.place, begun.text.trim())
    change(null)
  }
  return <CommentField label={`Comment on ${linesWords(begun.place)}`} word="Add to review" text={begun.text} change={(text) => change({ ...begun, text })} save={save} cancel={() => change(null)} />
}

interface CardProps { session: string; comment: PendingComment; anchor: Anchor; name?: string; show?: () => void }

/** `name` is the file where it is not in its place. */
export function CommentCard({ session, comment, anchor, name, show }: CardProps) {
  const [text, setText] = useState<string | null>(null)
  if (text !== null) {
    const save = () => { editComment(session, comment.id, text.trim()); setText(null) }
    return <CommentField label={`Comment on ${linesWords({ ...comment, ...anchor })}`} word="Save" text={text} change={setText} save={save} cancel={() => setText(null)} />
  }
  const where = name === undefined ? linesWords({ side: comment.side, start: anchor.start, end: anchor.end }) : placeWords(name, anchor.start, anchor.end)
  const quoted = (anchor.stale || anchor.row === null) && comment.lines.length > 0
  return (
    <article className={`comment ${anchor.stale ? 'stale' : ''}`} aria-label={`Comment on ${visibleLine(where)}`}>
      <header>
        <Icon name="edit" /> {show ? <button type="button" className="ghost small where" onClick={show}><bdi>{visibleLine(where)}</bdi></button> : <bdi>{visibleLine(where)}</bdi>}
        {anchor.stale && <span className="tag high">The code has changed since</span>}
        <span className="space" />
        <button type="button" className="ghost small" onClick={() => setText(comment.text)}>Edit</button>
        <button type="button" className="ghost small" onClick={() => dropComment(session, comment.id)}>Delete</button>
      </header>
      {quoted && <pre className="quoted" tabIndex={0} aria-label="The code it was written on">{comment.lines.slice(0, 12).map(visibleLine).join('\n')}{comment.lines.length > 12 && '\n…'}</pre>}
      <p className="words">{visibleLines(comment.text)}</p>
    </article>
  )
}

function visibleLines(text: string): string {
  return text.split('\n').map(visibleLine).join('\n')
}

// Prompts that wait for the running turn to end: they can still be changed or dropped.

import { useEffect, useReducer, type KeyboardEvent } from 'react'
import { plural } from '../../core/text/format'
import { attachedTo, edited, wordsOf } from '../../core/session/queued'
import type { QueuedPrompt } from '../../core/session/state'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { rescueEdits } from './queue_edits'
import { attempt, shell } from '../shell/shell'

export function QueueView({ session }: { session: LiveSession }) {
  const { queue } = session.state
  useEffect(() => {
    if (rescueEdits(session)) shell.say('The prompt was sent without your edit. The edit is now in the composer.')
  })
  if (queue.length === 0) return null
  return (
    <ol className="queue" aria-label="Queued prompts">
      {queue.map((prompt) => <Queued key={prompt.id} session={session} prompt={prompt} />)}
    </ol>
  )
}

function Queued({ session, prompt }: { session: LiveSession; prompt: QueuedPrompt }) {
  const [, drawAgain] = useReducer((count: number) => count + 1, 0)
  const words = wordsOf(prompt.content)
  const files = attachedTo(prompt.content)
  const text = session.edits.get(prompt.id)?.text ?? null
  const setText = (next: string | null) => {
    if (next === null) session.edits.delete(prompt.id)
    else session.edits.set(prompt.id, { before: words, text: next })
    drawAgain()
  }
  const save = async () => {
    if (text === null) return
    setText(null)
    if ((await attempt(sessions.editQueued(session.id, prompt.id, edited(prompt.content, text)))) !== null) return
    session.edits.set(prompt.id, { before: words, text })
    session.facts.emit()
  }
  const drop = () => {
    setText(null)
    document.getElementById('composer')?.focus()
    void attempt(sessions.dropQueued(session.id, prompt.id))
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    if (event.key === 'Escape') setText(null)
    else if (event.key === 'Enter' && !event.shiftKey) void save()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <li>
      {prompt.steer === 'sent' ? <Spinner /> : <Icon name={prompt.steer === null ? 'clock' : 'send'} />}
      <span className="tag">{prompt.steer === null ? 'queued' : prompt.steer === 'sent' ? 'steering' : 'steer'}</span>
      {text === null
        ? <span className="words"><Plain text={words.slice(0, 300)} />{files.length > 0 && <small> and {plural(files.length, 'file')}</small>}</span>
        : <textarea aria-label="Queued prompt" autoFocus rows={Math.min(6, text.split('\n').length)} value={text} onChange={(e) => setText(e.target.value)} onKeyDown={onKey} />}
      {prompt.steer !== 'sent' && <>
      {text === null
        ? <button type="button" className="ghost" aria-label="Edit queued prompt" title="Edit" onClick={() => setText(words)}><Icon name="edit" /></button>
        : <button type="button" className="ghost" aria-label="Save queued prompt" title="Save" onClick={() => void save()}><Icon name="check" /></button>}
      <button type="button" className="ghost" aria-label="Drop queued prompt" title="Drop" onClick={drop}><Icon name="cross" /></button>
      </>}
    </li>
  )
}

// Prompts that wait for the running turn to end: they can still be changed or dropped.

import { useState } from 'react'
import { textOf } from '../core/content'
import type { QueuedPrompt } from '../core/state'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { Icon } from './icons'
import { Plain } from './plain'
import { attempt } from './shell'

export function QueueView({ session }: { session: LiveSession }) {
  const { queue } = session.state
  if (queue.length === 0) return null
  return (
    <ol className="queue" aria-label="Queued prompts">
      {queue.map((prompt) => <Queued key={prompt.id} session={session} prompt={prompt} />)}
    </ol>
  )
}

function Queued({ session, prompt }: { session: LiveSession; prompt: QueuedPrompt }) {
  const words = prompt.content.map(textOf).join('')
  const [text, setText] = useState<string | null>(null)
  const save = async () => {
    if (text === null) return
    if ((await attempt(sessions.editQueued(session.id, prompt.id, { text }))) !== null) setText(null)
  }
  return (
    <li>
      <Icon name="clock" /> <span className="tag">queued</span>
      {text === null
        ? <span className="words"><Plain text={words.slice(0, 300)} /></span>
        : <input aria-label="Queued prompt" autoFocus value={text} onChange={(e) => setText(e.target.value)} onKeyDown={(e) => {
          if (e.key === 'Escape') { e.stopPropagation(); setText(null) }
          if (e.key === 'Enter') { e.preventDefault(); void save() }
        }} />}
      {text === null
        ? <button type="button" className="ghost" aria-label="Edit queued prompt" title="Edit" onClick={() => setText(words)}><Icon name="edit" /></button>
        : <button type="button" className="ghost" aria-label="Save queued prompt" title="Save" onClick={() => void save()}><Icon name="check" /></button>}
      <button type="button" className="ghost" aria-label="Drop queued prompt" title="Drop" onClick={() => void attempt(sessions.dropQueued(session.id, prompt.id))}><Icon name="cross" /></button>
    </li>
  )
}

// The prompt field: text with commands and mentions, attachments, the queue, and the stop button.

import { useEffect, useId, useRef, useState, type KeyboardEvent } from 'react'
import { flushSync } from 'react-dom'
import { completed, completingAt, type Completing } from '../../core/completion'
import { entryText, runningTurn } from '../../core/session/state'
import { ApiError, sessions, type Prompt } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { AgentQuestions } from '../permissions/agent_questions'
import { AttachmentList, useAttachments } from './attachments'
import { CompletionList, useSuggestions, type Suggestion } from './completion_list'
import { giveBack } from './drafts'
import { AttachButton, THUMBS, pasted, promptOf, useDraft, useGrowing } from './prompt_field'
import { Icon } from '../common/icons'
import { OptionPickers } from './option_pickers'
import { Plain } from '../common/plain_text'
import { ParkedCard } from './parked_card'
import { QueueView } from './queue_view'
import { settings, settingsChanged, type Sending } from '../shell/settings'
import { attemptSignedIn, shell } from '../shell/shell'
import { beginSession } from '../start/wish'
import { StopButton } from './stop_button'

/** The `main` one of a screen is where the keys lead. */
export function Composer({ session, main = false }: { session: LiveSession; main?: boolean }) {
  useSignal(session.facts)
  const [text, setText] = useDraft(session.id)
  const [at, setAt] = useState<Completing | null>(null)
  const [chosen, setChosen] = useState(0)
  const attachments = useAttachments(session.id)
  const field = useRef<HTMLTextAreaElement>(null)
  const listId = useId()
  const items = useSuggestions(session.id, at, session.state.commands)
  useGrowing(field, text)
  useEffect(() => {
    if (!main || shell.writing !== session.id) return
    field.current?.focus()
    shell.set({ writing: null })
  }, [main, session.id])
  const agent = session.state.agent || (store.summaries.get(session.id)?.agent ?? '')
  const busy = runningTurn(session.state) !== null
  useSignal(store.list)
  const offline = store.link === 'offline' || store.link === 'connecting' && store.loaded
  const ready = !offline && (text.trim() !== '' || attachments.items.length > 0) && !attachments.busy
  useSignal(settingsChanged)
  const first = settings().enter
  const other = first === 'steer' ? 'queue' : 'steer'

  const send = async (how: Sending = 'queue', onReset?: 'new') => {
    if (!ready) return
    const prompt = { ...promptOf(text, attachments), ...(onReset && { onReset }) }
    const { items: sent } = attachments
    setText('')
    attachments.clear()
    const accepted = await attemptSignedIn(agent, () => delivered(session, prompt, busy ? how : 'queue'))
    if (accepted?.delayed) shell.say(accepted.delayed)
    if (accepted !== null) return
    giveBack(session.id, text)
    attachments.restore(sent)
  }
  const pick = (item: Suggestion) => {
    if (at === null) return
    const next = completed(text, at, item.value)
    flushSync(() => {
      setText(next.text)
      setAt(null)
    })
    // At once: a caret that moved a frame later would take what is typed meanwhile to the wrong place.
    field.current?.setSelectionRange(next.caret, next.caret)
  }
  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return
    const item = items[chosen]
    if (at !== null && item !== undefined) {
      if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
        event.preventDefault()
        return setChosen((chosen + (event.key === 'ArrowDown' ? 1 : items.length - 1)) % items.length)
      }
      // A command that is typed in full is sent; there is nothing left to complete.
      const full = at.kind === 'command' && item.value === at.query
      if (event.key === 'Tab' || (event.key === 'Enter' && !full && !event.ctrlKey && !event.metaKey)) {
        event.preventDefault()
        return pick(item)
      }
      if (event.key === 'Escape') {
        event.stopPropagation()
        return setAt(null)
      }
    }
    if (event.key === 'ArrowUp' && text === '') {
      const last = session.state.entries.findLast((entry) => entry.type === 'user')
      if (last !== undefined) {
        event.preventDefault()
        return setText(entryText(last))
      }
    }
    const plain = !event.shiftKey && (event.altKey ? busy : event.ctrlKey || event.metaKey || !THUMBS.matches)
    if (event.key === 'Enter' && plain) {
      event.preventDefault()
      void send(event.altKey ? other : first)
    }
  }
  const look = () => {
    const caret = field.current?.selectionStart ?? 0
    setAt(completingAt(field.current?.value ?? '', caret))
    setChosen(0)
  }
  return (
    <>
    {/* A prompt may start the agent, which may ask before the session continues: also one sent before a reload. */}
    {(main || session.sending > 0) && agent !== '' && <div className="beforehand"><AgentQuestions agent={agent} waiting={session.sending > 0} /></div>}
    {session.forgotten && <Forgotten session={session} ready={ready} send={() => void send('queue', 'new')} />}
    <form className="composer" aria-label="Prompt" onSubmit={(e) => { e.preventDefault(); void send(first) }}>
      {offline && <p className="notice warning" role="status"><Icon name="alert" /> <span>The server cannot be reached. What you type is kept, and can be sent once it is back.</span></p>}
      <ParkedCard session={session} />
      <QueueView session={session} />
      <div className="box">
        <CompletionList id={listId} items={items} chosen={chosen} slash={at?.kind === 'command'} pick={pick} />
        <AttachmentList attachments={attachments} />
        <textarea
          ref={field}
          id={main ? 'composer' : undefined}
          rows={1}
          value={text}
          placeholder={busy ? WRITING[first] : 'Ask the agent: / commands, @ files'}
          aria-label="Prompt"
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={items.length > 0}
          aria-controls={items.length ? listId : undefined}
          aria-activedescendant={items.length ? `${listId}-${chosen}` : undefined}
          onChange={(event) => { setText(event.target.value); look() }}
          onSelect={look}
          onBlur={() => setAt(null)}
          onKeyDown={onKey}
          onPaste={(event) => pasted(event, attachments)}
        />
        <div className="tools">
          <AttachButton attachments={attachments} />
          <OptionPickers session={session} main={main} />
          <span className="space" />
          <StopButton session={session} />
          {busy && <SendButton how={other} keys="Alt Enter" ready={ready} send={() => void send(other)} />}
          <button type="submit" className="primary" disabled={!ready} title={busy ? `${HINTS[first]} (Enter)` : 'Send (Enter)'}>
            <Icon name={busy ? ICONS[first] : 'send'} /> <span className="word">{busy ? WORDS[first] : 'Send'}</span>
          </button>
        </div>
      </div>
    </form>
    </>
  )
}

const WORDS = { queue: 'Queue', steer: 'Steer' } as const
const ICONS = { queue: 'clock', steer: 'send' } as const
const HINTS = { queue: 'Queue for the next turn', steer: 'Say it into the running turn' } as const
const WRITING = { queue: 'Queue a prompt for the next turn…', steer: 'Say something into the running turn…' } as const

interface SendProps { how: Sending; keys: string; ready: boolean; send: () => void }

/** The way that Enter does not send. */
function SendButton({ how, keys, ready, send }: SendProps) {
  return (
    <button type="button" className="ghost other" disabled={!ready} title={`${HINTS[how]} (${keys})`} onClick={send}>
      <Icon name={ICONS[how]} /> <span className="word">{WORDS[how]}</span>
    </button>
  )
}

/** Null when the agent does not remember the session: what to do then is asked in its place. */
export async function delivered(session: LiveSession, prompt: Prompt, how: Sending): Promise<{ delayed?: string | null } | null> {
  const count = (change: 1 | -1, forgotten: string) => {
    session.sending += change
    session.forgotten = forgotten
    session.facts.emit()
  }
  count(1, '')
  let forgotten = ''
  try {
    return await (how === 'steer' ? sessions.steer : sessions.prompt)(session.id, prompt)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_continued') throw error
    forgotten = error.message
    return null
  } finally {
    count(-1, forgotten)
  }
}

interface ForgottenProps { session: LiveSession; ready: boolean; send: () => void }

/** The agent has lost the conversation: a person decides whether to continue anyway. */
function Forgotten({ session, ready, send }: ForgottenProps) {
  return (
    <div className="notice warning stranded" role="alert">
      <Icon name="alert" />
      <span><strong>The agent does not remember this session.</strong> <Plain text={session.forgotten} /></span>
      <button type="button" className="primary" disabled={!ready} onClick={send}>Send without its memory</button>
      <button type="button" onClick={() => beginSession(session.state.cwd)}><Icon name="plus" /> New session here</button>
    </div>
  )
}


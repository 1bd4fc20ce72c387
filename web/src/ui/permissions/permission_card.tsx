// Someone must decide. The card shows what would really run or be written, every answer there is,
// and the rule that an "always" would create. Keys count only while the card has the focus, and only
// after a moment: a card that appears under someone's fingers must not be answered by accident.

import { useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import { within, table } from '../../core/format'
import { asShown, type Shown } from '../../core/permission_options'
import type { PendingPermission } from '../../core/state'
import { commandLine } from '../../core/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { AskedDiff } from '../thread/diff_view'
import { TextEnds } from '../common/long_text'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useAnswerDelay } from './answer_delay'
import { answerNumber } from '../shell/keys'
import { attemptAnswer } from '../shell/shell'
import { ToolContentView } from '../thread/tool_content'

const OPERATIONS = table<string>({
  read: 'Read', write: 'Write', execute: 'Run a command', fetch: 'Fetch from the network', mcp: 'Use an MCP tool', other: 'Do something',
})

interface Props { session: LiveSession; pending: PendingPermission; cwd: string; place: number }

export function PermissionCard({ session, pending, cwd, place }: Props) {
  const [sent, setSent] = useState<string | null>(null)
  const ready = useAnswerDelay(session, pending.id, place)
  const answer = async (optionId: string) => {
    if (sent !== null || !ready || session.past) return
    setSent(optionId)
    if ((await attemptAnswer(sessions.permit(session.id, pending.id, optionId))) === null) setSent(null)
  }
  const options = useMemo(() => asShown(pending.options), [pending.options])
  const card = useRef<HTMLElement>(null)
  const byKey = useRef(false)
  useFocusAfter(card, session, pending.id, byKey)
  const onKey = (event: KeyboardEvent) => {
    byKey.current = true
    const number = answerNumber(event.key)
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || number === null) return
    const option = options[number - 1]
    if (option === undefined) return
    event.preventDefault()
    event.stopPropagation()
    void answer(option.id)
  }
  const what = OPERATIONS[pending.operation] ?? 'Do something'
  return (
    <section ref={card} className="card permission" tabIndex={0} aria-label={`Permission: ${what}`} data-request={pending.id} data-ready={ready ? '' : undefined} onKeyDown={onKey} onPointerDown={() => { byKey.current = false }}>
      <header>
        <Icon name="shield" /> <strong>Permission: {what.toLowerCase()}</strong>
        <span className="quiet">{pending.toolCallId === null && !pending.claimed ? 'Dragoman does it if you allow it' : 'as reported by the agent'}</span>
      </header>
      <Subject pending={pending} cwd={cwd} />
      {pending.content.map((item, at) => item.type === 'diff'
        ? <AskedDiff key={at} diff={item} cwd={cwd} />
        : <ToolContentView key={at} session={session} item={item} cwd={cwd} />)}
      <ol className="answers">
        {options.map((option, at) => (
          <li key={at}>
            <button
              type="button"
              className={toneOf(option)}
              disabled={sent !== null || session.past}
              aria-describedby={`${pending.id}-${at}`}
              onClick={() => void answer(option.id)}
            >
              <kbd>{at + 1}</kbd> {option.words}
            </button>
            <Remarks option={option} id={`${pending.id}-${at}`} />
          </li>
        ))}
      </ol>
    </section>
  )
}

function toneOf({ words }: Shown): string {
  if (words.endsWith('answer')) return 'unclear'
  return /reject/i.test(words) ? 'reject' : 'allow'
}

/** Next to the button and not part of it: what the agent calls the answer, and what an "always" leads to. */
function Remarks({ option, id }: { option: Shown; id: string }) {
  return (
    <div className="remarks" id={id}>
      {option.remark && <p className={option.warns ? 'warns' : 'quiet'}>{option.warns && <Icon name="alert" />} <Plain text={option.remark} /></p>}
      {option.consequence !== null && <p className="rule"><Plain text={option.consequence} lines /></p>}
    </div>
  )
}

function Subject({ pending, cwd }: { pending: PendingPermission; cwd: string }) {
  const command = pending.argv === null ? null : commandLine(pending.argv)
  const drawn = new Set(pending.content.map((item) => (item.type === 'diff' ? item.path : '')))
  const paths = pending.paths.filter((path) => !drawn.has(path)).map((path) => within(path, cwd).replaceAll('\n', '␊'))
  return (
    <>
      {command !== null && <TextEnds className="command" label="The command" text={command} />}
      {pending.cwd !== null && pending.cwd !== cwd && <p className="folder"><Icon name="folder" /> in <code><Plain text={pending.cwd} /></code></p>}
      {pending.env.length > 0 && <TextEnds className="paths" label="The variables" text={pending.env.map((name) => name.replaceAll('\n', '␊')).join('\n')} line={(name) => <>sets <code><Plain text={name} /></code></>} />}
      {paths.length > 0 && <TextEnds className="paths" label="The files" text={paths.join('\n')} line={(path) => <><Icon name="file" /> <code><Plain text={path} /></code></>} />}
      <Wording pending={pending} command={command} />
    </>
  )
}

/** The agent's words for what it claims; ours only where they add something. */
function Wording({ pending, command }: { pending: PendingPermission; command: string | null }) {
  const claimed = pending.claimed || pending.toolCallId !== null
  const known = command ?? pending.paths.join('')
  const told = pending.title.slice(pending.title.indexOf(' ') + 1)
  const more = told.startsWith(known) ? told.slice(known.length).replace(` in ${pending.cwd ?? ''}`, '').trim() : pending.title
  const title = claimed ? pending.title : more
  if (!title && !pending.explanation) return null
  return (
    <div className="wording">
      {claimed && <small className="quiet">In the agent’s words</small>}
      {title && <TextEnds className="title" label="The title" text={title.replaceAll('\n', '␊')} />}
      {pending.explanation && <TextEnds className="quiet" label="The explanation" text={pending.explanation} />}
    </div>
  )
}

/** Where the focus goes when its card is answered: by key to the next card, else to what is around it. */
function useFocusAfter(card: RefObject<HTMLElement | null>, session: LiveSession, id: string, byKey: RefObject<boolean>): void {
  useLayoutEffect(() => {
    const here = card.current
    return () => {
      if (here === null || !here.contains(document.activeElement) || session.state.pending.has(id)) return
      const around = here.closest<HTMLElement>('.scroller, main')
      requestAnimationFrame(() => {
        const next = byKey.current ? around?.querySelector<HTMLElement>('.card[data-request]') : null
        if (document.activeElement === document.body) (next ?? around)?.focus()
      })
    }
  }, [card, session, id, byKey])
}

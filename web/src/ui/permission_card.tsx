// Someone must decide. The card shows what would really run or be written, every answer there is,
// and the rule that an "always" would leave behind. Keys count only while the card has the focus, and
// not at once: nobody should answer what appeared under their fingers.

import { useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import type { PermissionOption } from '../core/facts'
import { within } from '../core/format'
import { consequenceOf, inOrder, plainName } from '../core/options'
import type { PendingPermission } from '../core/state'
import { commandLine, reveal } from '../core/visible'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { Icon } from './icons'
import { Plain } from './plain'
import { useReady } from './ready'
import { attemptAnswer } from './shell'
import { ToolContentView } from './tool_content'

const OPERATIONS: Record<string, string> = {
  read: 'Read', write: 'Write', execute: 'Run a command', fetch: 'Fetch from the network', mcp: 'Use an MCP tool', other: 'Do something',
}

interface Props { session: LiveSession; pending: PendingPermission; cwd: string; place: number }

export function PermissionCard({ session, pending, cwd, place }: Props) {
  const [sent, setSent] = useState<string | null>(null)
  const ready = useReady(session, pending.id, place)
  const answer = async (optionId: string) => {
    if (sent !== null || !ready || session.past) return
    setSent(optionId)
    if ((await attemptAnswer(sessions.permit(session.id, pending.id, optionId))) === null) setSent(null)
  }
  const options = useMemo(() => inOrder(pending.options), [pending.options])
  const card = useRef<HTMLElement>(null)
  const byKey = useRef(false)
  useFocusAfter(card, session, pending.id, byKey)
  const onKey = (event: KeyboardEvent) => {
    byKey.current = true
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !/^[1-9]$/.test(event.key)) return
    const option = options[Number(event.key) - 1]
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
        <span className="quiet">{pending.tool_call_id === null && !pending.claimed ? 'done by Dragoman if you allow it' : 'as the agent tells it'}</span>
      </header>
      <Subject pending={pending} cwd={cwd} />
      {pending.content.map((item, at) => <ToolContentView key={at} session={session} item={item} cwd={cwd} />)}
      <div className="options">
        {options.map((option, at) => (
          <button
            key={option.id}
            type="button"
            className={option.kind.startsWith('allow') ? 'allow' : 'reject'}
            disabled={sent !== null || session.past}
            onClick={() => void answer(option.id)}
          >
            <kbd>{at + 1}</kbd> <Plain text={plainName(option)} />
          </button>
        ))}
      </div>
      <Rules options={options} />
    </section>
  )
}

/** What each "always" would leave behind: the rule, or that there will be none, and why. */
function Rules({ options }: { options: PermissionOption[] }) {
  const lasting = options.flatMap((option) => {
    const words = consequenceOf(option)
    return words === null ? [] : [{ option, words }]
  })
  return lasting.map(({ option, words }) => (
    <p key={option.id} className="rule">
      <Icon name="info" /> “<Plain text={plainName(option)} />”: <span className="words"><Plain text={words} lines /></span>
    </p>
  ))
}

function Subject({ pending, cwd }: { pending: PendingPermission; cwd: string }) {
  const command = pending.argv === null ? null : commandLine(pending.argv)
  const drawn = new Set(pending.content.map((item) => (item.type === 'diff' ? item.path : '')))
  const paths = pending.paths.filter((path) => !drawn.has(path))
  return (
    <>
      {pending.title && <p className="title"><Plain text={pending.title} /></p>}
      {pending.explanation && <p className="quiet"><Plain text={pending.explanation} lines /></p>}
      {command !== null && <pre className="command" tabIndex={0} aria-label="The command"><Plain text={command} lines /></pre>}
      {paths.length > 0 && (
        <ul className="paths">
          {paths.map((path) => <li key={path} title={reveal(path)}><Icon name="file" /> <code><Plain text={within(path, cwd)} /></code></li>)}
        </ul>
      )}
    </>
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

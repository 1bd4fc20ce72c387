// Someone must decide. The card shows what would really run or be written, every answer there is,
// and the rule that an "always" would leave behind. Keys count only while the card has the focus, and
// not at once: nobody should answer what appeared under their fingers.

import { useLayoutEffect, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import { within } from '../core/format'
import type { PendingPermission } from '../core/state'
import { reveal, shellWords } from '../core/visible'
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
  const card = useRef<HTMLElement>(null)
  const byKey = useRef(false)
  useFocusAfter(card, session, pending.id, byKey)
  const onKey = (event: KeyboardEvent) => {
    byKey.current = true
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !/^[1-9]$/.test(event.key)) return
    const option = pending.options[Number(event.key) - 1]
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
        {pending.options.map((option, at) => (
          <button
            key={option.id}
            type="button"
            className={option.kind.startsWith('allow') ? 'allow' : 'reject'}
            disabled={sent !== null || session.past}
            onClick={() => void answer(option.id)}
          >
            <kbd>{at + 1}</kbd> <Plain text={option.name} />
          </button>
        ))}
      </div>
      <Rules pending={pending} />
    </section>
  )
}

/** What each "always" would leave behind. A refusal is about the same as what would be allowed. */
function Rules({ pending: { options, description } }: { pending: PendingPermission }) {
  const lasting = options.filter((option) => option.kind.endsWith('always'))
  if (lasting.length === 0) return null
  if (!description) return <p className="rule"><Icon name="info" /> Dragoman can make no rule that allows exactly this: “always” counts once here, unless the agent itself keeps it.</p>
  return lasting.map(({ id, name, kind }) => (
    <p key={id} className="rule">
      <Icon name="info" /> “<Plain text={name} />” writes this rule: <code><Plain text={kind === 'reject_always' ? description.replace(/^allow\b/, 'refuse') : description} lines /></code>
    </p>
  ))
}

function Subject({ pending, cwd }: { pending: PendingPermission; cwd: string }) {
  const command = pending.argv === null ? null : pending.argv.length === 1 ? pending.argv[0] ?? '' : shellWords(pending.argv)
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

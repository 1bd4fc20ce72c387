// Someone must decide. The card shows what would really run or be written, every answer there is,
// and the rule that an "always" would leave behind. Keys count only while the card has the focus, and
// not at once: nobody should answer what appeared under their fingers.

import { useState, type KeyboardEvent } from 'react'
import { within } from '../core/format'
import type { PendingPermission } from '../core/state'
import { shellWords } from '../core/visible'
import { sessions } from '../live/api'
import type { LiveSession } from '../live/session'
import { Icon } from './icons'
import { Plain } from './plain'
import { attempt } from './shell'
import { ToolContentView } from './tool_content'

const TOO_SOON_MS = 300

const OPERATIONS: Record<string, string> = {
  read: 'Read', write: 'Write', execute: 'Run a command', fetch: 'Fetch from the network', mcp: 'Use an MCP tool', other: 'Do something',
}

interface Props { session: LiveSession; pending: PendingPermission; cwd: string }

export function PermissionCard({ session, pending, cwd }: Props) {
  const [sent, setSent] = useState<string | null>(null)
  const answer = async (optionId: string) => {
    if (sent !== null || tooSoon(session, pending.id)) return
    setSent(optionId)
    if ((await attempt(sessions.permit(session.id, pending.id, optionId))) === null) setSent(null)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !/^[1-9]$/.test(event.key)) return
    const option = pending.options[Number(event.key) - 1]
    if (option === undefined) return
    event.preventDefault()
    event.stopPropagation()
    void answer(option.id)
  }
  const what = OPERATIONS[pending.operation] ?? 'Do something'
  return (
    <section className="card permission" tabIndex={0} aria-label={`Permission: ${what}`} data-request={pending.id} onKeyDown={onKey}>
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
            disabled={sent !== null}
            onClick={() => void answer(option.id)}
          >
            <kbd>{at + 1}</kbd> <Plain text={option.name} />
          </button>
        ))}
      </div>
      {pending.description && pending.options.some((option) => option.kind.endsWith('always')) && (
        <p className="rule"><Icon name="info" /> “Always” writes this rule: <code><Plain text={pending.description} lines /></code></p>
      )}
    </section>
  )
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
          {paths.map((path) => <li key={path} title={path}><Icon name="file" /> <code><Plain text={within(path, cwd)} /></code></li>)}
        </ul>
      )}
    </>
  )
}

function tooSoon(session: LiveSession, id: string): boolean {
  const arrived = session.arrivals.get(id)
  return arrived !== undefined && performance.now() - arrived < TOO_SOON_MS
}

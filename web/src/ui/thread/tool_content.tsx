// One thing inside a tool call: content, a diff, or a terminal.

import type { ToolContent } from '../../core/generated/content'
import type { Subagent } from '../../core/session/state'
import type { LiveSession } from '../../live/session'
import { ContentView, Unknown } from './content_view'
import { DiffView } from './diff_view'
import { TerminalView } from './terminal_view'

interface Props { session: LiveSession; item: ToolContent; cwd: string; subagent?: Subagent | null }

export function ToolContentView({ session, item, cwd, subagent = null }: Props) {
  if (item.type === 'content') return <ContentView content={item.content} words="printed" />
  if (item.type === 'diff') return <DiffView diff={item} cwd={cwd} />
  if (item.type === 'unknown') return <Unknown kind={item.kind} raw={item.raw} />
  // One that Dragoman runs is the session's, also if it runs for a subagent.
  const terminal = session.state.terminals.get(item.terminalId) ?? subagent?.thread.terminals.get(item.terminalId)
  if (terminal === undefined) return <p className="quiet">Terminal not started yet.</p>
  return <TerminalView session={session} terminal={terminal} />
}

// Next to the thread: the plan, what was changed, terminals, raw frames, and what is known.

import type { KeyboardEvent } from 'react'
import { currentPlan, isOver, type Entry } from '../../core/session/state'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { useRefetch } from '../common/refetch'
import { ChangesView, type AllChanges } from '../review/changes_view'
import { Icon } from '../common/icons'
import { InfoView } from './info_view'
import { ErrorBoundary } from '../common/error_boundary'
import { PlanView } from '../thread/plan_view'
import { RawFrames } from './raw_frames'
import { shell, type PaneTab } from '../shell/shell'
import { TerminalView } from '../thread/terminal_view'

const TABS: [PaneTab, string][] = [['plan', 'Plan'], ['changes', 'Changes'], ['terminals', 'Terminals'], ['raw', 'Raw'], ['info', 'Info']]

export function SidePane({ session }: { session: LiveSession }) {
  const version = useSignal(session.facts)
  useSignal(shell.signal)
  const changes = useRefetch(session.id, shell.tab === 'changes' ? version : workDone(session), () => sessions.changes(session.id))
  const counts: Partial<Record<PaneTab, number>> = { terminals: session.state.terminals.size, changes: changes.value?.changes.length ?? 0 }
  const move = (event: KeyboardEvent) => {
    const at = TABS.findIndex(([tab]) => tab === shell.tab)
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    const next = TABS[(at + by + TABS.length) % TABS.length]?.[0] ?? 'plan'
    shell.set({ tab: next })
    document.getElementById(`tab-${next}`)?.focus()
  }
  return (
    <aside className="pane" aria-label="Side pane">
      <div className="panehead">
        <div className="tabs" role="tablist" aria-label="Side pane" onKeyDown={move}>
          {TABS.map(([tab, word]) => (
            <button
              key={tab} id={`tab-${tab}`} type="button" role="tab" aria-selected={shell.tab === tab} aria-controls="panebody"
              tabIndex={shell.tab === tab ? 0 : -1} onClick={() => shell.set({ tab })}
            >
              {word}{counts[tab] ? ` ${counts[tab]}` : ''}
            </button>
          ))}
        </div>
        <button type="button" className="ghost" aria-label="Close side pane" onClick={() => shell.set({ pane: false })}><Icon name="cross" /></button>
      </div>
      <div className="panebody" id="panebody" role="tabpanel" aria-labelledby={`tab-${shell.tab}`} tabIndex={0}>
        <ErrorBoundary name="tab" of={shell.tab}><Tab session={session} changes={changes} /></ErrorBoundary>
      </div>
    </aside>
  )
}

function Tab({ session, changes }: { session: LiveSession; changes: AllChanges }) {
  if (shell.tab === 'plan') return <Plan session={session} />
  if (shell.tab === 'changes') return <ChangesView session={session} all={changes} />
  if (shell.tab === 'terminals') return <Terminals session={session} />
  return shell.tab === 'raw' ? <RawFrames session={session} /> : <InfoView session={session} />
}

function Plan({ session }: { session: LiveSession }) {
  const plan = currentPlan(session.state)
  if (plan === null) return <p className="empty">No plan. If the agent makes one, its progress appears here.</p>
  return <PlanView session={session} plan={plan} />
}

function Terminals({ session }: { session: LiveSession }) {
  const terminals = [...session.state.terminals.values()].reverse()
  if (terminals.length === 0) return <p className="empty">No terminals. Commands that Dragoman runs for the agent appear here live.</p>
  return <>{terminals.map((terminal, at) => <TerminalView key={terminal.id} session={session} terminal={terminal} open={at === 0} />)}</>
}

/** Grows with whatever may have written a file: then the server is asked what was changed. */
function workDone({ state }: LiveSession): number {
  const over = (entry: Entry) => entry.type === 'tool_call' && entry.status === 'completed'
  return state.entriesBefore + state.entries.filter(over).length + state.turns.filter(({ status }) => isOver(status)).length
}

// A terminal, read-only. Its last lines are plain text; the whole is drawn by xterm, which is loaded
// when the first one is opened and exists only while it can be seen.

import { useEffect, useRef, useState, useSyncExternalStore } from 'react'
import type { Terminal } from '../core/state'
import { plainOutput, shellWords } from '../core/visible'
import type { LiveSession } from '../live/session'
import { Icon, Spinner } from './icons'
import { Plain } from './plain'
import type { Screen } from './screen'

const TAIL_LINES = 8
const TAIL_CHARS = 8000

export function useTerminal(session: LiveSession, terminal: Terminal): number {
  return useSyncExternalStore((listener) => session.watch(terminal, listener), () => terminal.version)
}

export function TerminalView({ session, terminal, open = false }: { session: LiveSession; terminal: Terminal; open?: boolean }) {
  const version = useTerminal(session, terminal)
  const [whole, setWhole] = useState(open)
  return (
    <figure className="term">
      <figcaption>
        <Icon name="run" />
        <code className="argv">{terminal.argv.length || terminal.command ? <Plain text={terminal.command || shellWords(terminal.argv)} /> : 'terminal of the agent'}</code>
        <Ending terminal={terminal} />
        <button type="button" className="ghost small" aria-expanded={whole} onClick={() => setWhole(!whole)}>{whole ? 'Fold' : 'Open'}</button>
      </figcaption>
      {whole ? <Drawn terminal={terminal} version={version} /> : <Tail output={terminal.output} />}
    </figure>
  )
}

export function Ending({ terminal }: { terminal: Terminal }) {
  if (terminal.running && !terminal.released) return <span className="status running"><Spinner /> running</span>
  if (terminal.signal !== null) return <span className="status failed"><Icon name="cross" /> <Plain text={terminal.signal} /></span>
  if (terminal.exit_code === null) return <span className="status idle">released</span>
  if (terminal.exit_code === 0) return <span className="status idle"><Icon name="check" /> exit 0</span>
  return <span className="status failed"><Icon name="cross" /> exit {terminal.exit_code}</span>
}

function Tail({ output }: { output: string }) {
  const lines = plainOutput(output.slice(-TAIL_CHARS)).trimEnd().split('\n')
  const text = lines.slice(-TAIL_LINES).join('\n')
  return <pre className="tail" tabIndex={0} aria-label="Last lines of output">{text || 'No output yet.'}</pre>
}

function Drawn({ terminal, version }: { terminal: Terminal; version: number }) {
  const host = useRef<HTMLDivElement>(null)
  const screen = useRef<Screen | null>(null)
  const [ready, setReady] = useState(false)
  useEffect(() => {
    let gone = false
    void import('./screen').then(({ Screen }) => {
      if (gone || host.current === null) return
      screen.current = new Screen(host.current)
      setReady(true)
    })
    return () => {
      gone = true
      screen.current?.dispose()
      screen.current = null
      setReady(false)
    }
  }, [terminal])
  useEffect(() => {
    if (ready) screen.current?.show(terminal.output, terminal.dropped)
  }, [ready, terminal, version])
  return <div className="xterm-host" ref={host} aria-label="Terminal output" role="group" />
}

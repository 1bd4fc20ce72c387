// A terminal, read-only. Its last lines are plain text; the whole is drawn by xterm, which is loaded
// when the first one is opened and exists only while it can be seen.

import { useEffect, useMemo, useRef, useState, useSyncExternalStore, type CSSProperties, type KeyboardEvent } from 'react'
import { OUTPUT_LINES } from '../../core/generated/limits'
import type { Terminal } from '../../core/session/state'
import { PALETTE, colouredLines, type Piece } from '../../core/text/ansi'
import { commandLine, plainOutput } from '../../core/text/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import type { XtermScreen } from './xterm_screen'
import { StopOne } from '../composer/stop_button'

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
        <code className="argv">{terminal.argv.length || terminal.command ? <Plain text={terminal.command || commandLine(terminal.argv)} /> : 'agent’s terminal'}</code>
        <Ending terminal={terminal} />
        {terminal.cancellable && terminal.running && <StopOne session={session} what="this terminal" stop={() => sessions.cancelTerminal(session.id, terminal.id)} />}
        <button type="button" className="ghost small" aria-expanded={whole} onClick={() => setWhole(!whole)}>{whole ? 'Collapse' : 'Expand'}</button>
      </figcaption>
      {whole ? <Drawn terminal={terminal} version={version} /> : <Tail output={terminal.output} />}
    </figure>
  )
}

export function Ending({ terminal }: { terminal: Terminal }) {
  if (terminal.running && !terminal.released) return <span className="status running"><Spinner /> running</span>
  if (terminal.signal !== null) return <span className="status failed"><Icon name="cross" /> <Plain text={terminal.signal} /></span>
  if (terminal.exitCode === null) return <span className="status idle">released</span>
  if (terminal.exitCode === 0) return <span className="status idle"><Icon name="check" /> exit 0</span>
  return <span className="status failed"><Icon name="cross" /> exit {terminal.exitCode}</span>
}

function Tail({ output }: { output: string }) {
  const lines = useMemo(() => colouredLines(endOf(output)), [output])
  while (lines.at(-1)?.every(({ text }) => text.trim() === '')) lines.pop()
  return (
    <pre className="tail" tabIndex={0} aria-label="Last lines of output">
      {lines.length === 0 && 'No output yet.'}
      {lines.slice(-OUTPUT_LINES).map((line, at) => <span key={at}>{at > 0 && '\n'}{line.map((piece, place) => <span key={place} style={lookOf(piece)}>{piece.text}</span>)}</span>)}
    </pre>
  )
}

function lookOf({ colour, bold, italic, underline, inverse }: Piece): CSSProperties {
  const ink = colour === null ? undefined : PALETTE[colour]
  return {
    ...(inverse ? { color: '#14181d', backgroundColor: ink ?? '#d8dee6' } : ink && { color: ink }),
    ...(bold && { fontWeight: 650 }), ...(italic && { fontStyle: 'italic' }), ...(underline && { textDecoration: 'underline' }),
  }
}

/** From the beginning of a line, so that no sequence is cut in two. */
function endOf(output: string): string {
  if (output.length <= TAIL_CHARS) return output
  const end = output.slice(-TAIL_CHARS)
  const line = end.indexOf('\n')
  return line < 0 ? end : end.slice(line + 1)
}

function tailOf(output: string): string {
  return plainOutput(endOf(output)).trimEnd().split('\n').slice(-OUTPUT_LINES).join('\n')
}

function Drawn({ terminal, version }: { terminal: Terminal; version: number }) {
  const host = useRef<HTMLDivElement>(null)
  const screen = useRef<XtermScreen | null>(null)
  const [ready, setReady] = useState(false)
  useEffect(() => {
    let gone = false
    // It measures its letters once: they have to be there.
    void Promise.all([import('./xterm_screen'), document.fonts.load('12px "JetBrains Mono Variable"')]).then(([{ XtermScreen }]) => {
      if (gone || host.current === null) return
      screen.current = new XtermScreen(host.current)
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
  const onKey = (event: KeyboardEvent) => {
    const lines = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key]
    if (lines === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    screen.current?.scroll(lines)
  }
  return (
    <div className="xterm-frame" role="group" aria-label="Terminal output" tabIndex={0} onKeyDown={onKey}>
      <div className="xterm-host" ref={host} aria-hidden="true" />
      <pre className="hidden">{tailOf(terminal.output)}</pre>
    </div>
  )
}

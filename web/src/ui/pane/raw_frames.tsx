// The frames to and from the agent, as they travelled.

import { useEffect, useRef, useState } from 'react'
import { bytes } from '../../core/text/format'
import { visible } from '../../core/text/safe_text'
import { sessions, type RawFrame } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { copy } from '../common/clipboard'
import { Icon } from '../common/icons'
import { shell } from '../shell/shell'

const KEPT = 1000
const SHOWN = 300

export function RawFrames({ session }: { session: LiveSession }) {
  const [frames, setFrames] = useState<RawFrame[]>([])
  const [filter, setFilter] = useState('')
  const last = useRef(0)
  useEffect(() => {
    let gone = false
    const look = async () => {
      try {
        const told = await sessions.frames(session.id, last.current)
        last.current = told.last
        if (!gone && told.frames.length) setFrames((now) => [...now, ...told.frames].slice(-KEPT))
      } catch (error) {
        if (!gone && last.current === 0) shell.fail(error)
      }
    }
    void look()
    const timer = setInterval(() => void look(), 1500)
    return () => {
      gone = true
      clearInterval(timer)
    }
  }, [session])
  const words = filter.toLowerCase()
  const shown = frames.filter((frame) => frame.text.toLowerCase().includes(words)).slice(-SHOWN)
  return (
    <div className="frames">
      <div className="changeshead">
        <input type="search" aria-label="Filter frames" placeholder="Filter, for example session/update" value={filter} onChange={(e) => setFilter(e.target.value)} />
        <button type="button" className="ghost" aria-label="Copy frames" onClick={() => copy(shown.map((frame) => frame.text).join('\n'), 'Frames')}><Icon name="copy" /></button>
      </div>
      {frames.length === 0 && <p className="empty">No frames. They are kept only while the session runs.</p>}
      {shown.map((frame) => (
        <details key={frame.seq}>
          <summary>
            <span className={frame.direction}>{frame.direction === 'sent' ? '→' : '←'}<span className="hidden">{frame.direction}</span></span>
            <code>{visible(label(frame.text))}</code> <small>{bytes(frame.size)}</small>
          </summary>
          <pre>{visible(pretty(frame.text))}</pre>
        </details>
      ))}
    </div>
  )
}

function label(text: string): string {
  const method = /"method"\s*:\s*"([^"]*)"/.exec(text)?.[1]
  const update = /"sessionUpdate"\s*:\s*"([^"]*)"/.exec(text)?.[1]
  if (method !== undefined) return update === undefined ? method : `${method} ${update}`
  return text.includes('"error"') ? 'error' : 'result'
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

// Some sessions under a heading, a line each.

import type { ReactNode } from 'react'
import { ago, baseName } from '../../core/text/format'
import { titleOf } from '../../core/session/listing'
import { reveal } from '../../core/text/safe_text'
import type { Summary } from '../../live/api'
import { store } from '../../live/store'
import { AgentMark } from '../common/agent_mark'
import { Plain } from '../common/plain_text'
import { NameTag } from './name_tag'
import { paths } from '../shell/route'
import { StatusMark } from '../common/status_mark'

interface SessionGroupProps { name: string; sessions: Summary[]; note?: (session: Summary) => string; more?: ReactNode }

export function SessionGroup({ name, sessions, note = () => '', more }: SessionGroupProps) {
  if (sessions.length === 0) return null
  return (
    <section className="shelf" aria-label={name}>
      <h2>{name} {more}</h2>
      <ul>
        {sessions.map((session) => (
          <li key={session.id} className={store.unread(session) ? 'unread' : ''}>
            <a href={paths.session(session.id)}>
              <StatusMark session={session} quiet />
              <span className="title"><span className="words"><Plain text={titleOf(session)} /><NameTag session={session} /></span>{note(session) && <small><Plain text={note(session)} /></small>}</span>
              <small className="where" title={reveal(`${session.cwd} · ${session.agent}`)}><Plain text={baseName(session.cwd)} /> <AgentMark name={session.agent} /></small>
              <small className="when">{ago(session.updatedAt)}</small>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

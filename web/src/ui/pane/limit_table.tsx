// The limits that hold for a session, and what was used of each.

import { limitWords } from '../../core/text/limits'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { useRefetch } from '../common/refetch'
import { Plain } from '../common/plain_text'

/** Nothing while it does not run on this server, or has none. */
export function LimitTable({ session }: { session: LiveSession }) {
  const { turns } = session.state
  const looks = 2 * turns.length + Number(['completed', 'cancelled', 'failed', 'interrupted'].includes(turns.at(-1)?.status ?? 'completed'))
  const found = useRefetch(`${session.id} limits`, looks, () => sessions.limits(session.id)).value?.limits ?? []
  if (found.length === 0) return null
  return (
    <section>
      <h3>Limits</h3>
      <ul className="limit-list" aria-label="Limits">
        {found.map((bound, number) => {
          const { title, used, part, then } = limitWords(bound)
          return (
            <li key={number}>
              <span><Plain text={title} /></span>
              {part !== null && <meter min={0} max={1} high={0.8} value={part} aria-label={title} />}
              <small><Plain text={`${used}; ${then} (${bound.limit.source})`} /></small>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

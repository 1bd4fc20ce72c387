// How full the context was over a session's life, and what it cost, as two lines over one time.

import type { UsageChanged } from '../../core/generated/events'
import { money } from '../../core/text/format'
import type { LiveSession } from '../../live/session'
import { useSessionHistory } from './session_history'

const WIDTH = 100
const HEIGHT = 38
const MOST = 300

export function UsageChart({ session }: { session: LiveSession }) {
  const points = thinned(useSessionHistory(session).filter((event): event is UsageChanged => event.type === 'usage'))
  if (points.length < 2) return null
  const [from, to] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 1]
  const cost = points.findLast((point) => point.cost != null)?.cost
  // An unreported value is not zero: it is left out. So is a cost in another currency.
  const full = points.filter((point) => point.size > 0)
  const paid = points.filter((point) => point.cost?.currency === cost?.currency && point.cost != null)
  const dearest = Math.max(...paid.map((point) => point.cost?.amount ?? 0))
  const line = (known: UsageChanged[], share: (point: UsageChanged) => number) => known
    .map((point) => `${(((point.at ?? 0) - from) / Math.max(1e-9, to - from) * WIDTH).toFixed(2)},${(HEIGHT - 2 - share(point) * (HEIGHT - 4)).toFixed(2)}`)
    .join(' ')
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label="Context used and cost over time">
        <line x1="0" x2={WIDTH} y1={HEIGHT - 2 - 0.8 * (HEIGHT - 4)} y2={HEIGHT - 2 - 0.8 * (HEIGHT - 4)} className="limit" />
        <polyline className="context" points={line(full, (point) => Math.min(1, point.used / point.size))} />
        {dearest > 0 && <polyline className="cost" points={line(paid, (point) => (point.cost?.amount ?? 0) / dearest)} />}
      </svg>
      <figcaption>
        <span className="key context" /> Context; the dashed line marks 80 %.
        {cost != null && <> <span className="key cost" /> Cost so far: {money(cost.amount, cost.currency)}.</>}
      </figcaption>
    </figure>
  )
}

/** Few enough to draw; the last one is always there. */
function thinned(points: UsageChanged[]): UsageChanged[] {
  const step = Math.ceil(points.length / MOST)
  return step < 2 ? points : points.filter((_, at) => at % step === 0 || at === points.length - 1)
}

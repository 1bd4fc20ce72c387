// How full the context is, and what the session has cost.

import type { ContextUsage } from '../core/facts'
import { count, money } from '../core/format'
import { Icon } from './icons'

export function Meter({ usage }: { usage: ContextUsage }) {
  const share = usage.size > 0 ? usage.used / usage.size : 0
  const percent = Math.round(share * 100)
  return (
    <span className={`meter ${share >= 0.8 ? 'high' : ''}`} title={`${usage.used} of ${usage.size} tokens in the context`}>
      <meter min={0} max={1} high={0.8} value={share} aria-label="Context used" /> context {percent} %
      {share >= 0.8 && <> <Icon name="alert" /> nearly full</>}
      {usage.cost && <span className="cost"> · {money(usage.cost.amount, usage.cost.currency)}</span>}
      <span className="hidden">{count(usage.used)} tokens</span>
    </span>
  )
}

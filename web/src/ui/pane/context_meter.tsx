// How full the context is, and what the session has cost, as reported by the agent.

import type { ContextUsage } from '../../core/generated/facts'
import { count, money } from '../../core/text/format'
import { Icon } from '../common/icons'

const HIGH = 0.8

export function ContextMeter({ usage }: { usage: ContextUsage }) {
  const share = usage.size > 0 ? usage.used / usage.size : 0
  const high = share >= HIGH
  return (
    <span className={`meter ${high ? 'high' : ''}`} title={usage.size > 0 ? `${usage.used} of ${usage.size} tokens in the context` : `${usage.used} tokens in the context; the agent does not report its size`}>
      {usage.size > 0
        ? <><meter min={0} max={1} high={HIGH} value={share} aria-label="Context used" /> context {Math.round(share * 100)} %</>
        : <>context {count(usage.used)} tokens</>}
      {high && <> <Icon name="alert" /> nearly full</>}
      {usage.cost && <span className="cost"> · {money(usage.cost.amount, usage.cost.currency)}</span>}
    </span>
  )
}

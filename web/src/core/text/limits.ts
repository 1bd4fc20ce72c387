// A limit of a session in words.

import type { BoundLimit } from '../generated/responses'

interface LimitWords { title: string; used: string; part: number | null; then: string }

const PER = { turn: 'each turn', session: 'this session', day: 'all sessions of a day', agent: 'all sessions of this agent', project: 'all sessions of this project' }
const THEN = { stop: 'stops the turn', ask: 'asks you', warn: 'warns' }

/** `part` is how much of it was used, from 0 to 1; null if the agent has not said. */
export function limitWords({ limit, used }: BoundLimit): LimitWords {
  const amount = (value: number) => {
    if (limit.measure === 'cost') return `${Number(value.toFixed(6))} ${limit.currency}`
    if (limit.measure === 'time') return `${Math.round(value)} s`
    return `${Math.round(value)} ${limit.measure.replace('_', ' ')}`
  }
  return {
    title: `${amount(limit.most)} for ${PER[limit.per]}`,
    used: used === null ? 'not reported by the agent yet' : `${amount(used)} used`,
    part: used === null ? null : Math.min(1, used / limit.most),
    then: THEN[limit.then],
  }
}

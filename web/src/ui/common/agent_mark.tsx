// The initials of an agent in its colour; its name stands next to it.

import { markOf } from '../../core/text/agent_marks'

export function AgentMark({ name }: { name: string }) {
  const { initials, hue } = markOf(name)
  return <span className="agentmark" aria-hidden="true" style={{ backgroundColor: `oklch(0.47 0.105 ${hue})` }}>{initials}</span>
}

// Which subagent asks, as the agent calls it.

import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

export function AskedBy({ name }: { name: string | null }) {
  return name === null ? null : <span className="askedby" title="A subagent asks"><Icon name="bot" /> <Plain text={name} /></span>
}

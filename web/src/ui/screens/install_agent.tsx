// How to install an agent.

import type { AgentInfo } from '../../live/api'
import { store } from '../../live/store'
import { copy } from '../common/clipboard'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

export function InstallAgent({ agent }: { agent: AgentInfo }) {
  if (!agent.install) return agent.command ? <p className="quiet">The program <code><Plain text={agent.command} /></code> was not found.</p> : null
  return (
    <div className="torun">
      <pre className="command" tabIndex={0} aria-label="The command that installs it"><Plain text={agent.install} lines /></pre>
      <button type="button" className="ghost" aria-label="Copy the command" title="Copy the command" onClick={() => copy(agent.install, 'Command')}><Icon name="copy" /></button>
      <button type="button" onClick={() => void store.askAgents()}>Look again</button>
    </div>
  )
}

// What an agent wants before it can start, where one is: to be installed, or a sign-in.

import { useState } from 'react'
import type { AgentInfo } from '../../live/api'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { InstallAgent } from '../screens/install_agent'
import { SignInMethods } from '../screens/sign_in'

export function AgentNotice({ agent }: { agent: AgentInfo | undefined }) {
  const [open, setOpen] = useState(false)
  if (agent === undefined) return null
  if (agent.state === 'missing') {
    return <div className="notice stranded"><Icon name="info" /> <span><strong><Plain text={agent.title || agent.name} /></strong> is not installed.</span> <InstallAgent agent={agent} /></div>
  }
  if (agent.signedIn !== false) return null
  return (
    <div className="notice warning stranded">
      <Icon name="shield" /> <span><strong><Plain text={agent.title || agent.name} /></strong> is not signed in.</span>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>Sign in</button>
      {open && <SignInMethods agent={agent.name} done={() => void store.askAgents()} />}
    </div>
  )
}

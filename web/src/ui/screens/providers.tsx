// The model providers of an agent: where it sends its requests to the model, and in which protocol.

import { type FormEvent, useEffect, useState } from 'react'
import { agents as api, type ModelProvider } from '../../live/api'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { attempt, shell } from '../shell/shell'

export function Providers({ agent }: { agent: string }) {
  const [known, setKnown] = useState<ModelProvider[] | null>(null)
  const [failure, setFailure] = useState('')
  const ask = () => api.providers(agent).then(({ providers }) => setKnown(providers), (error: Error) => setFailure(error.message))
  useEffect(() => void ask(), [agent])
  if (known === null) return failure ? <p className="notice warning"><Icon name="alert" /> <span><Plain text={failure} lines /></span></p> : <p className="quiet"><Spinner /> Asking the agent…</p>
  if (known.length === 0) return <p className="quiet">This agent lists no model providers.</p>
  return (
    <div className="providers">
      <p className="quiet">A change holds until the server stops. To keep one, use <code>dragoman agents providers</code>.</p>
      <ul aria-label="Model providers">
        {known.map((each) => <Provider key={each.providerId} agent={agent} provider={each} changed={() => void ask()} />)}
      </ul>
    </div>
  )
}

function Provider({ agent, provider, changed }: { agent: string; provider: ModelProvider; changed: () => void }) {
  const { providerId, supported, required, current } = provider
  const [apiType, setApiType] = useState(current?.apiType ?? supported[0] ?? '')
  const [baseUrl, setBaseUrl] = useState(current?.baseUrl ?? '')
  const [key, setKey] = useState('')
  const [busy, setBusy] = useState('')
  const run = async (what: string, work: Promise<unknown>, said: string) => {
    setBusy(what)
    const done = await attempt(work)
    setBusy('')
    if (done === null) return
    shell.say(said)
    setKey('')
    changed()
  }
  const save = (event: FormEvent) => {
    event.preventDefault()
    const headers: Record<string, string> = key.trim() ? { Authorization: key.trim() } : {}
    void run('save', api.setProvider(agent, providerId, { apiType, baseUrl: baseUrl.trim(), headers }), `${providerId} is set.`)
  }
  return (
    <li>
      <p>
        <strong><Plain text={providerId} /></strong>{' '}
        {current ? <span><Plain text={current.apiType} /> at <code><Plain text={current.baseUrl} /></code></span> : <span className="quiet">switched off</span>}
      </p>
      {supported.length === 0 ? <p className="quiet">The agent names no protocol for it, so it cannot be set.</p> : (
        <form onSubmit={save} className="request" aria-label={`Set ${providerId}`}>
          <label className="field"><span className="label">Protocol</span>
            <select value={apiType} onChange={(e) => setApiType(e.target.value)}>
              {supported.map((each) => <option key={each} value={each}>{each}</option>)}
            </select>
          </label>
          <label className="field"><span className="label">Address</span>
            <input type="url" required value={baseUrl} onChange={(e) => setBaseUrl(e.target.value)} placeholder="https://llm.example" spellCheck={false} />
          </label>
          <label className="field"><span className="label">Authorization header</span>
            <input type="password" value={key} onChange={(e) => setKey(e.target.value)} autoComplete="off" placeholder="optional: Bearer …" />
          </label>
          <button type="submit" className="primary" disabled={busy !== ''}>{busy === 'save' && <Spinner />} Set</button>
          {!required && current && (
            <button type="button" disabled={busy !== ''} onClick={() => void run('off', api.disableProvider(agent, providerId), `${providerId} is switched off.`)}>{busy === 'off' && <Spinner />} Switch off</button>
          )}
        </form>
      )}
    </li>
  )
}

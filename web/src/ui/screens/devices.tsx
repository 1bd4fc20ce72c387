// The devices that may use this server, notifications in this browser, and how to pair another device.

import { useEffect, useState } from 'react'
import { devices as api, pairingFailure, pushObstacle, subscribe, unsubscribe, wishes, type Pairing, type PushWishes, type TokenShape } from '../../live/devices'
import { sinceWords } from '../../core/text/format'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { attempt, shell } from '../shell/shell'

export function Devices() {
  const [tokens, setTokens] = useState<TokenShape[] | null>(null)
  const [pairing, setPairing] = useState<Pairing | null>(null)
  const refresh = () => void attempt(api.list()).then((told) => told !== null && setTokens(told.tokens))
  useEffect(refresh, [])
  useEffect(() => {
    if (pairing === null) return
    // The one that is paired now appears by itself.
    const timer = setInterval(refresh, 3_000)
    return () => clearInterval(timer)
  }, [pairing])
  const waiting = pairing !== null && tokens?.find(({ id }) => id === pairing.token.id)?.state
  return (
    <main className="screen devices" aria-label="Devices">
      <h1>Devices</h1>
      <p className="lead">Answer your agents from a phone or another computer. A device you pair can do what you can, until you revoke it.</p>
      {pairingFailure() !== '' && <p className="notice warning"><Icon name="alert" /> <span>{pairingFailure()}</span></p>}
      <Notifications />
      <section aria-labelledby="paired">
        <h2 id="paired">Paired devices</h2>
        {tokens?.length === 0 && <p className="quiet">None yet.</p>}
        <ul className="devicelist">
          {tokens?.map((token) => <Device key={token.id} token={token} changed={refresh} />)}
        </ul>
        {pairing !== null && waiting !== 'active'
          ? <Code pairing={pairing} cancel={() => { setPairing(null); void attempt(api.revoke(pairing.token.id)).then(refresh) }} />
          : <Pair begin={(name) => void attempt(api.pair(name)).then((made) => { if (made !== null) setPairing(made); refresh() })} />}
        {waiting === 'active' && <p className="notice good" role="status"><Icon name="check" /> <span>Paired.</span></p>}
      </section>
    </main>
  )
}

function Device({ token, changed }: { token: TokenShape; changed: () => void }) {
  const [sure, setSure] = useState(false)
  const over = token.state === 'revoked' || token.state === 'expired'
  const revoke = () => void attempt(api.revoke(token.id)).then(() => {
    setSure(false)
    changed()
  })
  return (
    <li className={`card ${over ? 'over' : ''}`}>
      <strong><Plain text={token.name} /></strong>
      {token.here && <span className="tag">this device</span>}
      <span className="quiet">{stateOf(token)}</span>
      {!over && (sure
        ? (
          <span className="options" role="group" aria-label={`Revoke ${token.name}?`}>
            <span>It is signed out at once.</span>
            <button type="button" className="danger" onClick={revoke}>Revoke</button>
            <button type="button" autoFocus onClick={() => setSure(false)}>Keep</button>
          </span>
        )
        : <button type="button" aria-label={`Revoke ${token.name}`} onClick={() => setSure(true)}>Revoke…</button>)}
    </li>
  )
}

function stateOf({ state, usedAt, revokedAt }: TokenShape): string {
  if (state === 'revoked') return `revoked ${sinceWords(revokedAt ?? '')}`
  if (state === 'pairing') return 'waits to be paired'
  if (state === 'expired') return 'expired'
  return usedAt == null ? 'never used' : `used ${sinceWords(usedAt)}`
}

function Pair({ begin }: { begin: (name: string) => void }) {
  const [name, setName] = useState('')
  return (
    <form className="request" onSubmit={(event) => { event.preventDefault(); begin(name.trim()) }}>
      <label className="field"><span>Name of the device</span> <input value={name} maxLength={64} required placeholder="phone" onChange={(event) => setName(event.target.value)} /></label>
      <button type="submit"><Icon name="plus" /> Pair a device</button>
    </form>
  )
}

const LOCAL = /^(localhost|127\.|\[::1\])/

function Code({ pairing, cancel }: { pairing: Pairing; cancel: () => void }) {
  const size = pairing.rows.length
  const dark = pairing.rows.flatMap((row, y) => [...row].flatMap((module, x) => (module === '1' ? [`M${x} ${y}h1v1h-1z`] : [])))
  return (
    <div className="card pairing">
      <svg viewBox={`-3 -3 ${size + 6} ${size + 6}`} role="img" aria-label="QR code of the address below" shapeRendering="crispEdges">
        <rect x="-3" y="-3" width={size + 6} height={size + 6} fill="#fff" />
        <path d={dark.join('')} fill="#000" />
      </svg>
      <div>
        <p>Scan this with the device, or open the address there. It works once, within ten minutes.</p>
        {LOCAL.test(location.host) && <p className="notice warning"><Icon name="alert" /> <span>Only this machine can open this address. Open the page at an address that the device can reach, and pair there.</span></p>}
        <p><code className="install"><Plain text={pairing.address} /></code></p>
        <button type="button" onClick={cancel}>Cancel</button>
      </div>
    </div>
  )
}

function Notifications() {
  const [wanted, setWanted] = useState(wishes())
  const [busy, setBusy] = useState(false)
  const obstacle = pushObstacle()
  const change = async (next: PushWishes | null) => {
    setBusy(true)
    try {
      await (next === null ? unsubscribe() : subscribe(next))
      setWanted(next)
    } catch (error) {
      shell.fail(error)
    }
    setBusy(false)
  }
  const usual: PushWishes = { content: false, endings: false }
  return (
    <section aria-labelledby="pushes">
      <h2 id="pushes">Notifications in this browser</h2>
      {obstacle !== '' && <p className="quiet">{obstacle}</p>}
      {obstacle === '' && (
        <div className="wishes">
          <Check name="Notify me when an agent asks something and nobody looks at the page" checked={wanted !== null} disabled={busy} set={(on) => void change(on ? usual : null)} />
          {wanted !== null && (
            <>
              <Check name="Say what is asked, and let me allow it once from the notification" checked={wanted.content} disabled={busy} set={(content) => void change({ ...wanted, content })} />
              <Check name="Also when a turn ends" checked={wanted.endings} disabled={busy} set={(endings) => void change({ ...wanted, endings })} />
            </>
          )}
        </div>
      )}
    </section>
  )
}

function Check({ name, checked, disabled, set }: { name: string; checked: boolean; disabled: boolean; set: (on: boolean) => void }) {
  return <label className="check"><input type="checkbox" checked={checked} disabled={disabled} onChange={(event) => set(event.target.checked)} /> <span>{name}</span></label>
}

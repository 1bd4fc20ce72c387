// No token, or one the server does not know.

import { useState, type FormEvent } from 'react'
import { pairingFailure } from '../../live/devices'
import { setToken, token, tokenIn, tried } from '../../live/token'
import { Spinner } from '../common/icons'

const REFUSED = {
  unknown: 'Wrong token for this server.',
  unreachable: 'Cannot reach the server.',
}

export function SignedOut() {
  const [refused, setRefused] = useState(pairingFailure() !== '' ? pairingFailure() : token() === '' ? '' : 'The token saved in this browser is not valid for this server.')
  const [busy, setBusy] = useState(false)
  const enter = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const typed = tokenIn(String(new FormData(event.currentTarget).get('token') ?? ''))
    setBusy(true)
    const outcome = await tried(typed)
    setBusy(false)
    if (outcome !== 'known') return setRefused(REFUSED[outcome])
    setToken(typed)
    location.reload()
  }
  return (
    <main className="screen home" aria-label="Signed out">
      <img src="./icon.svg" alt="" width="48" height="48" />
      <h1>Signed out</h1>
      <p className="lead">Open the address that <code>dragoman serve</code> printed; it ends in <code>#token=…</code>. Or paste the token here.</p>
      <form className="searchform" onSubmit={(event) => void enter(event)}>
        <input name="token" type="password" autoComplete="off" aria-label="Token" required autoFocus aria-invalid={refused !== ''} aria-describedby="refused" />
        <button type="submit" className="primary" disabled={busy}>{busy && <Spinner />} Sign in</button>
      </form>
      <p id="refused" className="wrong" role="alert">{refused}</p>
    </main>
  )
}

// A missing session: deleted while it was open, or unknown to this server.

import { useState } from 'react'
import type { LiveSession } from '../../live/session'
import { copy } from '../common/clipboard'
import { draft } from '../composer/drafts'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { beginSession } from '../start/wish'

/** In the place of the composer: what was read can still be read. */
export function DeletedSession({ session }: { session: LiveSession }) {
  const [unsent] = useState(() => draft(session.id).trim())
  return (
    <div className="notice warning stranded" role="alert">
      <Icon name="trash" />
      <span><strong>This session was deleted.</strong> You can read the transcript above until you leave this page.</span>
      {unsent && <button type="button" onClick={() => copy(unsent, 'Your draft')}><Icon name="copy" /> Copy your draft</button>}
      <button type="button" onClick={() => beginSession(session.state.cwd)}><Icon name="plus" /> New session here</button>
      <a className="button" href="#/">All sessions</a>
    </div>
  )
}

/** It could not be loaded. */
export function MissingSession({ session }: { session: LiveSession }) {
  const unknown = session.error?.status === 404
  return (
    <main className="screen home" aria-label="Session">
      <Icon name={unknown ? 'trash' : 'alert'} />
      <h1>{unknown ? 'No such session' : 'This session could not be loaded'}</h1>
      <p className="lead">{unknown ? 'It was deleted, or the link is incomplete.' : <Plain text={session.error?.message ?? ''} />}</p>
      <div className="options">
        <a className="button" href="#/">All sessions</a>
        {!unknown && <button type="button" onClick={() => void session.reload()}>Try again</button>}
      </div>
    </main>
  )
}

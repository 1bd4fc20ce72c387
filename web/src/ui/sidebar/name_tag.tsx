// The session's name on the command line (`--session`), next to its title.

import { nameBeside } from '../../core/session/listing'
import { reveal } from '../../core/text/safe_text'
import type { Summary } from '../../live/api'
import { Plain } from '../common/plain_text'

export function NameTag({ session }: { session: Summary }) {
  const name = nameBeside(session)
  if (name === null) return null
  return <span className="tag name" title={`Name on the command line: --session ${reveal(name)}`}><Plain text={name} /></span>
}

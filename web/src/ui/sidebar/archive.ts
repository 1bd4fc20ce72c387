// Out of the list, and back.

import { sessions as api, type Summary } from '../../live/api'
import { store } from '../../live/store'
import { attempt, shell } from '../shell/shell'

export async function archive(session: Summary): Promise<void> {
  const done = await attempt(api.change(session.id, { archived: !session.archived }))
  if (done !== null) {
    store.add({ ...session, archived: !session.archived })
    shell.say(session.archived ? 'Session restored.' : 'Session archived.')
  }
}

// A session as a file, JSON lines as the command line exports them.

import { token } from '../../live/token'
import { shell } from '../shell/shell'

export async function download(id: string): Promise<void> {
  const headers = { Authorization: `Bearer ${token()}` }
  const response = await fetch(`/api/sessions/${encodeURIComponent(id)}/export`, { headers })
  if (!response.ok) return shell.say(`The export failed (${response.status}).`, true)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = `${id}.jsonl`
  link.click()
  URL.revokeObjectURL(link.href)
}

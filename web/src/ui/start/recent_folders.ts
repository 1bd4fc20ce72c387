// The folders that sessions were last used in.

import { store } from '../../live/store'

const MOST = 12

export function recentFolders(): string[] {
  const byUse = [...store.summaries.values()].sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
  return [...new Set(byUse.map((session) => session.cwd))].filter((folder) => folder !== '').slice(0, MOST)
}

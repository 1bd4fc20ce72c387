// Unfinished text that survives navigation, in this tab's memory only.

import { useState } from 'react'

const kept = new Map<string, unknown>()

export function useDraftInMemory<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, set] = useState(() => (kept.has(key) ? kept.get(key) as T : initial))
  const keep = (next: T) => {
    if (next === initial) kept.delete(key)
    else kept.set(key, next)
    set(next)
  }
  return [value, keep]
}

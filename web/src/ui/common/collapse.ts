// Which rows a person expanded or collapsed: it must survive when scrolling removes a row from the page.

import { useState } from 'react'

const chosen = new Map<string, boolean>()

/** Expand rows that are not on the page, or not yet. */
export function expand(keys: string[]): void {
  for (const key of keys) chosen.set(key, true)
}

export function useCollapse(key: string, initially: boolean): [boolean, () => void] {
  const [, redraw] = useState(0)
  const open = chosen.get(key) ?? initially
  const toggle = () => {
    chosen.set(key, !open)
    redraw((n) => n + 1)
  }
  return [open, toggle]
}

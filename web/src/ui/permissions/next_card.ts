// Where the focus goes when its card is answered.

import { useLayoutEffect, type RefObject } from 'react'
import type { LiveSession } from '../../live/session'

const CARDS = '.card[data-request]'

/** In the inbox, and after a key, to the next card; else to what is around the card. */
export function useNextCard(card: RefObject<HTMLElement | null>, session: LiveSession, id: string, byKey: RefObject<boolean>): void {
  useLayoutEffect(() => {
    const here = card.current
    return () => {
      if (here === null || !here.contains(document.activeElement) || session.state.pending.has(id)) return
      const around = here.closest<HTMLElement>('.scroller, main')
      const advances = byKey.current || here.closest('.asked') !== null
      const next = advances && around !== null ? cardsAfter(around, here) : []
      requestAnimationFrame(() => {
        if (document.activeElement !== document.body) return
        const goal = next.find((each) => each.isConnected) ?? (advances ? around?.querySelector<HTMLElement>(CARDS) : null) ?? around
        goal?.focus()
        goal?.scrollIntoView({ block: 'nearest' })
      })
    }
  }, [card, session, id, byKey])
}

function cardsAfter(around: HTMLElement, here: HTMLElement): HTMLElement[] {
  const cards = [...around.querySelectorAll<HTMLElement>(CARDS)]
  return cards.slice(cards.indexOf(here) + 1)
}

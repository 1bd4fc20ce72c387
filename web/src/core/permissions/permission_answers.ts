// The answers on a permission card: the agent's options in our words, and what Dragoman offers next
// to them. An option for always that would count once is worded as once.

import { asShown, type Shown } from './permission_options'
import type { PermissionOffer, PermissionOption } from '../generated/facts'
import { WORDS } from '../generated/permission_words'

const ONCE = new Map([['allow_always', WORDS.get('allow_once')], ['reject_always', WORDS.get('reject_once')]])

export interface Answer extends Shown {
  /** The key that chooses it. */
  number: number
  /** It does no more than another answer, so that it needs no button. */
  spare: boolean
}

export function answersTo(options: readonly PermissionOption[]): Answer[] {
  const shown = asShown(options)
  return shown.map((option, at) => {
    const once = lasts(option) ? undefined : ONCE.get(option.kind)
    const spare = once !== undefined && !option.warns && shown.some((other) => other.words === once && !other.warns)
    return { ...option, words: once ?? option.words, number: at + 1, spare }
  })
}

function lasts({ countsOnce, words, kind }: Shown): boolean {
  return !countsOnce || !ONCE.has(kind) || words.endsWith('answer')
}

// ── what Dragoman offers ────────────────────────────────────────────────────────────────────────

/** One offer for each thing that can be allowed, the narrowest first. */
export function subjectsOf(offers: readonly PermissionOffer[]): PermissionOffer[] {
  return offers.filter((offer, at) => offers.findIndex(({ breadth }) => breadth === offer.breadth) === at)
}

/** The offers for this, by how long they count. */
export function scopesOf(offers: readonly PermissionOffer[], breadth: string): PermissionOffer[] {
  return offers.filter((offer) => offer.breadth === breadth)
}

/** What was chosen; where that is not offered together, the shortest that is. */
export function offerFor(offers: readonly PermissionOffer[], breadth: string, scope: string): PermissionOffer | undefined {
  const found = scopesOf(offers, breadth)
  return found.find((offer) => offer.scope === scope) ?? found[0]
}

const SCOPES = new Map([['session', 'this session'], ['project', 'this project'], ['user', 'everywhere']])

export function scopeWords({ scope }: PermissionOffer): string {
  return SCOPES.get(scope) ?? scope
}

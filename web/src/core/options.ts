// The answers to a permission request as they are shown: in one order, in plain words, as on the
// command line. What is sent back is the option as it came.

import type { PermissionOption } from './facts'

const PLAIN: Record<string, string> = {
  allow_once: 'Allow', allow_always: 'Always allow', reject_once: 'Reject', reject_always: 'Always reject',
}
const ORDER = Object.keys(PLAIN)

/** By kind, so that the first is for once where there is one; those of one kind stay as they came. */
export function inOrder(options: readonly PermissionOption[]): PermissionOption[] {
  return [...options].sort((a, b) => placeOf(a) - placeOf(b))
}

function placeOf({ kind }: PermissionOption): number {
  const place = ORDER.indexOf(kind)
  return place < 0 ? ORDER.length : place
}

/** A name that is only the kind, or nothing, is put into words. */
export function plainName({ name, kind }: PermissionOption): string {
  const told = name.trim()
  return told === '' || told === kind ? PLAIN[kind] ?? kind : told
}

/** What an answer for always leads to, where it is known; null for one that is for once. */
export function consequenceOf(option: PermissionOption): string | null {
  return option.kind.endsWith('_always') ? option.consequence ?? null : null
}

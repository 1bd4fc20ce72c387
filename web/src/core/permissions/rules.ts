// Permission rules, and the reasons of decisions, in words.

import type { RuleFields as Rule, Verdict } from '../generated/responses'
import type { Decision } from '../generated/facts'
import { baseName, moment, table } from '../text/format'
import { shellWords } from '../text/safe_text'

export type { Rule }

export const YOLO = '--yolo'

const DOING = table<string>({
  read: 'reading', write: 'writing', execute: 'running', fetch: 'fetching', mcp: 'calling', other: 'other requests',
})

/** Of a rule that does not say which. */
const ANY = table<string>({ read: 'any file', write: 'any file', execute: 'any command', fetch: 'anything', mcp: 'any tool' })

/** What it speaks of, without its effect: the operation, and what it names. */
export function subjectOf(rule: Rule): { operation: string; names: string[] } {
  const command = rule.argv ? shellWords(rule.argv) : rule.argvPrefix ? `${shellWords(rule.argvPrefix)} …` : null
  const names = [command, rule.cwd == null ? null : `in ${rule.cwd}`, rule.path, rule.host, rule.tool].filter((part): part is string => part != null)
  return { operation: rule.operation ?? 'anything', names }
}

const YOURS = table<string>({ 'your answer': 'your “always” answer', 'your rule': 'your rule' })

/** Where a stored rule comes from. */
export function madeBy({ source = '' }: Rule): string {
  if (source.endsWith('/.dragoman/policy.toml')) return 'the project’s file'
  return source === 'your rule' ? 'added by you' : 'your answer'
}

/** Why something was decided; a stored rule is named by what it says, and not by its id. */
export function reasonOf({ reason, rule }: Decision | Verdict): string {
  const known = rule as Rule | null | undefined
  const source = known?.source ?? ''
  const name = YOURS[source]
  if (!known?.id || name === undefined) return reason
  const { operation, names } = subjectOf(known)
  const any = known.argv || known.argvPrefix || known.path || known.host || known.tool ? undefined : ANY[operation]
  const words = [DOING[operation] ?? operation, any, ...names].filter(Boolean).join(' ')
  return `${reason.replace(`${source} ${known.id}`, name)}: ${words}`
}

/** Rules that were considered: those that match first. */
export function inOrder<T extends { matches: boolean }>(rules: readonly T[]): T[] {
  return [...rules].sort((a, b) => Number(b.matches) - Number(a.matches))
}

export interface Source { words: string; why: string }

/** Where a rule comes from that the server was started with, and why it cannot be taken back here. */
export function sourceOf({ source = '' }: Rule): Source {
  if (source.startsWith('--')) return { words: `started with ${source}`, why: 'To revoke it, start the server without it.' }
  return { words: `the file ${baseName(source)}`, why: 'To revoke it, edit the file and restart the server.' }
}

/** The flags among the rules that a server was started with, in their order. */
export function flagsOf(given: readonly Rule[]): string[] {
  return [...new Set(given.map(({ source = '' }) => source).filter((source) => source.startsWith('--')))]
}

/** --yolo writes a rule for each operation; they are one line to read. */
export function folded(given: readonly Rule[]): Rule[] {
  const yolo = given.find(({ source }) => source === YOLO)
  const others = given.filter(({ source }) => source !== YOLO)
  return yolo === undefined ? others : [...others, { effect: 'allow', anywhere: true, source: YOLO }]
}

export function scopeWords(rule: Rule): string {
  const parts = [rule.agent && `agent ${rule.agent}`, rule.project && `in ${rule.project}`, rule.session && `session ${rule.session}`].filter(Boolean)
  if (parts.length) return parts.join(', ')
  return rule.scope === 'user' || rule.scope === undefined ? 'everything' : rule.scope
}

export function expiryWords(rule: Rule): string {
  return rule.expiresAt == null ? '' : `until ${moment(rule.expiresAt)}`
}

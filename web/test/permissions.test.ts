import { expect, test } from 'vitest'
import type { PermissionOption } from '../src/core/facts'
import { consequenceOf, inOrder, plainName } from '../src/core/options'
import { flagsOf, folded, reasonOf, sourceOf, type Rule } from '../src/core/rules'
import { commandLine } from '../src/core/visible'

const option = (kind: string, id = kind, name = kind): PermissionOption => ({ id, name, kind })

test('answers stand in one order whatever the agent offers first; others come last, as they came', () => {
  const kinds = ['odd', 'allow_always', 'allow_once', 'reject_once', 'reject_always', 'stranger']
  expect(inOrder(kinds.map((kind) => option(kind))).map(({ id }) => id)).toEqual(
    ['allow_once', 'allow_always', 'reject_once', 'reject_always', 'odd', 'stranger'],
  )
  const twice = [option('reject_once'), option('allow_once', 'b'), option('allow_once', 'a')]
  expect(inOrder(twice).map(({ id }) => id)).toEqual(['b', 'a', 'reject_once'])
  expect(twice[0]?.id).toBe('reject_once')
})

test('a name that is only the kind is put into plain words', () => {
  const kinds = ['allow_once', 'allow_always', 'reject_once', 'reject_always', 'odd']
  expect(kinds.map((kind) => plainName(option(kind)))).toEqual(['Allow', 'Always allow', 'Reject', 'Always reject', 'odd'])
  expect(plainName(option('allow_once', 'a', ' '))).toBe('Allow')
  expect(plainName(option('allow_once', 'a', 'Yes, go on'))).toBe('Yes, go on')
})

test('every answer for always says what it leads to, and none for once does', () => {
  const told = { ...option('reject_always'), consequence: 'counts once only: it is a shell line' }
  expect(consequenceOf(told)).toBe('counts once only: it is a shell line')
  expect(consequenceOf(option('allow_once'))).toBeNull()
  expect(consequenceOf(option('reject_always'))).toBeNull()
})

test('a reason names a rule by what it says', () => {
  const rule = { effect: 'allow', operation: 'execute', argv: ['git', 'status'], id: '54f36205ada8', source: 'your answer' }
  const reason = 'your answer 54f36205ada8 allows it'
  expect(reasonOf({ effect: 'allow', reason, rule })).toBe('your “always” answer allows it: running git status')
  expect(reasonOf({ effect: 'allow', reason: '--yolo allows it', rule: { effect: 'allow', source: '--yolo' } })).toBe('--yolo allows it')
  expect(reasonOf({ effect: 'deny', reason: 'answered' })).toBe('answered')
})

test('rules of the start say where they come from, and --yolo is one of them', () => {
  const yolo = ['read', 'write'].map((operation): Rule => ({ effect: 'allow', operation, anywhere: true, source: '--yolo' }))
  const given: Rule[] = [{ effect: 'deny', path: 'x', source: '/home/ada/rules.json' }, { effect: 'allow', operation: 'write', source: '--write' }, ...yolo]
  expect(flagsOf(given)).toEqual(['--write', '--yolo'])
  expect(folded(given).map((rule) => sourceOf(rule).words)).toEqual(['the file rules.json', 'started with --write', 'started with --yolo'])
  expect(folded([])).toEqual([])
})

test('one word is a line for a shell, and is shown as it is', () => {
  expect(commandLine(['echo SHELL && pwd'])).toBe('echo SHELL && pwd')
  expect(commandLine(['git', 'commit', '-m', 'a b'])).toBe("git commit -m 'a b'")
})

import { expect, test } from 'vitest'
import type { PermissionOffer, PermissionOption } from '../src/core/generated/facts'
import { newPendingElicitation, newPendingPermission } from '../src/core/generated/state'
import { answersTo, offerFor, scopesOf, subjectsOf } from '../src/core/permissions/permission_answers'
import { leading, timesAsked, together } from '../src/core/permissions/questions'
import { titleBeyond } from '../src/core/permissions/request_titles'
import type { Pending } from '../src/core/session/state'

const asks = (id: string, fields: object = {}): Pending => ({ ...newPendingPermission(), id, options: [], argv: ['make'], ...fields })
const waiting = (session: string, pending: Pending, agent = 'demo') => ({ session: { id: session, agent }, pending })
const ids = (groups: { session: { id: string } }[][]) => groups.map((group) => group.map(({ session }) => session.id).join(''))

test('a question that repeats one that waits is answered with it, and counts', () => {
  const pending = new Map(['a', 'b', 'c', 'd'].map((id) => [id, asks(id, { sameAs: id === 'b' || id === 'c' ? 'a' : null })]))
  expect(leading(pending).map(({ id }) => id)).toEqual(['a', 'd'])
  expect(timesAsked(pending, 'a')).toBe(3)
  expect(timesAsked(pending, 'd')).toBe(1)
  pending.delete('a')
  expect(leading(pending).map(({ id }) => id)).toEqual(['b', 'c', 'd'])
})

test('sessions that ask alike are answered together, in the order of the first', () => {
  const form: Pending = { ...newPendingElicitation(), id: 'f', message: 'Which?', mode: 'form' }
  const alike = [waiting('a', asks('1', { toolCallId: 'x' })), waiting('b', asks('2', { argv: ['ls'] })), waiting('c', asks('3', { toolCallId: 'y' }))]
  expect(ids(together(alike))).toEqual(['ac', 'b'])
  // As one session was loaded and the other told.
  const turned = Object.fromEntries(Object.entries(asks('2')).reverse()) as unknown as Pending
  expect(ids(together([waiting('a', asks('1')), waiting('b', turned)]))).toEqual(['ab'])
  expect(ids(together(alike, new Set([JSON.stringify(['c', '3'])])))).toEqual(['a', 'b', 'c'])
  expect(ids(together([waiting('a', form), waiting('b', form)]))).toEqual(['a', 'b'])
})

test('what differs in anything, or names nothing, is another question', () => {
  const differences = [
    { argv: ['make', 'x'] }, { cwd: '/other' }, { env: ['PATH'] }, { operation: 'execute' }, { title: 'Build' }, { explanation: 'why' },
    { danger: 'deletes' }, { paths: ['/a'] }, { content: [{ type: 'diff', path: '/a', newText: 'x' }] },
    { options: [{ id: 'a', name: 'Allow', kind: 'allow_once' }] },
  ]
  for (const each of differences) expect(ids(together([waiting('a', asks('1')), waiting('b', asks('2', each))]))).toEqual(['a', 'b'])
  expect(ids(together([waiting('a', asks('1')), waiting('b', asks('2'), 'another')]))).toEqual(['a', 'b'])
  expect(ids(together(['a', 'b'].map((id) => waiting(id, asks(id, { argv: null })))))).toEqual(['a', 'b'])
})

const option = (kind: string, countsOnce = false, name = kind): PermissionOption => ({ id: kind, name, kind, countsOnce })

test('an answer for always that counts once is worded as once, and needs no button of its own', () => {
  const told = answersTo([option('allow_once'), option('allow_always', true), option('reject_once'), option('reject_always')])
  expect(told.map(({ number, words, spare }) => [number, words, spare])).toEqual([
    [1, 'Allow once', false], [2, 'Allow once', true], [3, 'Reject', false], [4, 'Always reject', false],
  ])
  const alone = answersTo([option('allow_always', true), option('reject_once')])
  expect(alone.map(({ words, spare }) => [words, spare])).toEqual([['Allow once', false], ['Reject', false]])
  const [, misleading] = answersTo([option('allow_once'), option('allow_always', true, 'Reject')])
  expect(misleading).toMatchObject({ words: 'Allow once', warns: true, spare: false })
})

const offer = (breadth: string, scope: string): PermissionOffer => ({ id: `${breadth}:${scope}`, breadth, scope, subject: breadth, words: `Allow ${breadth}` })

test('of what and how long only what is offered together can be chosen', () => {
  const offers = [offer('this', 'session'), offer('this', 'project'), offer('program', 'session'), offer('program', 'project'), offer('program', 'user')]
  expect(subjectsOf(offers).map(({ breadth }) => breadth)).toEqual(['this', 'program'])
  expect(scopesOf(offers, 'this').map(({ scope }) => scope)).toEqual(['session', 'project'])
  expect(offerFor(offers, 'program', 'user')?.id).toBe('program:user')
  expect(offerFor(offers, 'this', 'user')?.id).toBe('this:session')
  expect(offerFor([], 'this', 'user')).toBeUndefined()
})

test.each([
  ['git status', ['git status'], ''],
  ['Run `git status`', ['git status'], ''],
  ['Run git status in /w', ['git status', '/w'], ''],
  ['git sta…', ['git status --short'], ''],
  ['shell · git sta...…', ['git status --short'], ''],
  ['shell · git sta...', ['git status --short'], ''],
  ['shell · git sta', ['git status --short'], 'shell · git sta'],
  ['shell · git log...', ['git status --short'], 'shell · git log...'],
  ['make\n  all', ['make all'], ''],
  ['Edit orders.py', ['/w/src/orders.py', 'orders.py'], ''],
  ['', ['git status'], ''],
  ['Tag the release', ['git tag v2'], 'Tag the release'],
  ['git status (safe)', ['git status'], 'git status (safe)'],
  ['shell', ['git status'], 'shell'],
  ['write', [], 'write'],
])('of the title %j beside %j is said: %j', (title, shown, said) => {
  expect(titleBeyond(title, shown)).toBe(said)
})

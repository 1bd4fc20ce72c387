import { expect, test } from 'vitest'
import { fenceLabel, fenceWords } from '../src/core/fence'

test('a session says how it is fenced and what its agent reaches', () => {
  expect(fenceLabel(null, null)).toBe('not fenced')
  expect(fenceLabel('namespaces', null)).toBe('fenced · network: all')
  expect(fenceLabel('namespaces', [])).toBe('fenced · network: none')
  expect(fenceLabel('namespaces', ['a.org'])).toBe('fenced · network: 1 host')
  expect(fenceLabel('namespaces', ['a.org', 'b.org'])).toBe('fenced · network: 2 hosts')
  expect(fenceWords(null, null)).toBe('none: the agent can do what you can')
  expect(fenceWords('landlock', null)).toBe('landlock; network: all')
  expect(fenceWords('namespaces', [])).toBe('namespaces; network: none')
  expect(fenceWords('namespaces', ['a.org', '*.b.org'])).toBe('namespaces; network: a.org, *.b.org')
})

import { beforeEach, expect, test, vi } from 'vitest'
import { tokenIn, tried } from '../src/live/token'
import { openWindow } from './browser'

beforeEach(openWindow)

test('a token is found in what was pasted, also in a whole address', () => {
  expect(tokenIn(' abc ')).toBe('abc')
  expect(tokenIn('http://127.0.0.1:80/#token=a%2Fb&to=/agents')).toBe('a/b')
})

test('a wrong token is told from a server that is away', async () => {
  const answer = (status: number) => vi.stubGlobal('fetch', async () => new Response('{}', { status }))
  answer(200)
  expect(await tried('abc')).toBe('known')
  expect(await tried('a b')).toBe('unknown')
  answer(401)
  expect(await tried('abc')).toBe('unknown')
  answer(500)
  expect(await tried('abc')).toBe('unreachable')
  vi.stubGlobal('fetch', async () => { throw new TypeError('away') })
  expect(await tried('abc')).toBe('unreachable')
})

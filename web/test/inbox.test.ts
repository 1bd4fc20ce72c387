import { expect, test, vi } from 'vitest'
import type { Event } from '../src/core/generated/events'
import { FakeServer, openWindow, until } from './browser'

// What happens is told by hand here.
vi.mock('../src/live/tab_link', () => ({ listen: () => undefined }))
openWindow()
const { store } = await import('../src/live/store')

const question = (id: string): Event => ({ type: 'permission_requested', requestId: id, options: [] })
const order = () => store.waiting().map(({ pending }) => pending.id)

test('questions stand in the order they came, whatever the list of sessions does', async () => {
  const server = new FakeServer()
  for (const id of ['a', 'b', 'c']) {
    server.tell(id, question(`of ${id}`))
    server.summaries.set(id, { status: id === 'a' ? 'idle' : 'waiting' })
  }
  await store.refresh()
  await until(() => order().length === 2)
  const before = order()
  // The list has what was used last on top: now that is `a`, and then `c` once more.
  server.summaries.set('a', { status: 'waiting' })
  await store.refresh()
  await until(() => order().length === 3)
  expect(order()).toEqual([...before, 'of a'])
  store.summaries = new Map([...store.summaries].reverse())
  expect(order()).toEqual([...before, 'of a'])
})

test('questions from before the page was opened stand in the order they were asked', async () => {
  const server = new FakeServer()
  // The list has what was used last on top, and so it is loaded first.
  const times = new Map([['late', '2026-11-17T12:00:00Z'], ['early', '2026-11-17T10:00:00Z'], ['middle', '2026-11-17T11:00:00Z']])
  for (const [id, updatedAt] of times) {
    server.tell(id, question(`of ${id}`))
    server.summaries.set(id, { status: 'waiting', updatedAt })
  }
  await store.refresh()
  await until(() => order().length === 3)
  expect(order()).toEqual(['of early', 'of middle', 'of late'])
})

import { expect, test, vi } from 'vitest'
import type { Event } from '../src/core/generated/events'
import { FakeServer, openWindow, until } from './browser'

// What happens is told by hand here.
vi.mock('../src/live/stream', () => ({ listen: () => undefined }))
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

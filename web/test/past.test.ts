import { expect, test } from 'vitest'
import type { Event } from '../src/core/generated/events'
import { entryText } from '../src/core/session/state'
import { PastSession } from '../src/live/past_session'

const events: Event[] = [
  { type: 'agent_message', content: { type: 'text', text: 'Alpha' }, messageId: 'm' },
  { type: 'agent_message', content: { type: 'text', text: ' beta' }, messageId: 'm' },
  { type: 'tool_call', toolCallId: 'c', title: 'Look', status: 'pending' },
  { type: 'tool_call', toolCallId: 'c', status: 'completed' },
]

test('going on along the time line draws the rows that change', () => {
  const session = new PastSession('s')
  session.show(events, 1)
  const [message] = session.state.entries
  let drawn = 0
  if (message) session.watch(message, () => { drawn++ })
  session.show(events, 2)
  expect([drawn, message && entryText(message)]).toEqual([1, 'Alpha beta'])
  session.show(events, 3)
  const call = session.state.entries[1]
  if (call) session.watch(call, () => { drawn++ })
  session.show(events, 4)
  expect(drawn).toBe(2)
  expect(call).toMatchObject({ status: 'completed' })
})

test('going back shows what was there then', () => {
  const session = new PastSession('s')
  session.show(events, 4)
  session.show(events, 1)
  expect(session.state.entries.map(entryText)).toEqual(['Alpha'])
  session.show(events, 0)
  expect(session.state.entries).toEqual([])
})

test('nothing in it can be answered', () => {
  expect(new PastSession('s').past).toBe(true)
})

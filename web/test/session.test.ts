import { beforeEach, expect, test } from 'vitest'
import type { Event } from '../src/core/generated/events'
import { entryText } from '../src/core/session/state'
import { LiveSession } from '../src/live/session'
import { FakeServer, frame, openWindow, until } from './browser'

const word = (text: string): Event => ({ type: 'agent_message', content: { type: 'text', text }, messageId: 'm' })
const row = (text: string): Event => ({ type: 'agent_message', content: { type: 'text', text }, messageId: text })
const question = (id: string): Event => ({ type: 'permission_requested', requestId: id, options: [] })
const rows = (session: LiveSession) => session.state.entries.map(entryText)

let server: FakeServer

beforeEach(() => {
  openWindow()
  server = new FakeServer()
})

async function loaded(id = 's'): Promise<LiveSession> {
  const session = new LiveSession(id)
  await session.load()
  return session
}

test('a joined frame that begins with what was loaded doubles no word', async () => {
  server.tell('s', word('one '), word('two '))
  const session = await loaded()
  server.tell('s', word('three '), word('four '))
  session.receive(frame('s', word('two three four '), 2, 4))
  await until(() => session.state.lastSeq === 4)
  expect(rows(session)).toEqual(['one two three four '])
})

test('what is missing between two frames is asked for, once at a time', async () => {
  server.tell('s', word('a'))
  const session = await loaded()
  server.tell('s', word('b'))
  const [third, fourth] = server.tell('s', word('c'), word('d'))
  let open = () => undefined as void
  server.before = () => new Promise((resolve) => { open = resolve })
  if (third) session.receive(third)
  await until(() => server.asked.length === 2)
  if (fourth) session.receive(fourth)
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(server.asked.length).toBe(2)
  server.before = () => undefined
  open()
  await until(() => rows(session)[0] === 'abcd')
})

test('a question that is never answered keeps no thread from being caught up with', async () => {
  server.tell('s', word('a'))
  const session = await loaded()
  server.tell('s', word('b'))
  server.before = () => new Promise(() => undefined)
  for (const told of server.tell('s', word('c'))) session.receive(told)
  await until(() => server.asked.length === 2)
  server.before = () => undefined
  await session.catchUp()
  await until(() => rows(session)[0] === 'abc')
})

test('after an interruption everything is caught up with, however much it is', async () => {
  server.tell('s', word('a'))
  const session = await loaded()
  server.tell('s', ...Array.from({ length: 12_000 }, () => word('.')))
  await session.catchUp()
  await until(() => session.state.lastSeq === 12_001)
})

test('a request that fails once while a thread is caught up with is made again', async () => {
  server.tell('s', word('a'))
  const session = await loaded()
  server.tell('s', word('b'))
  failOnce(() => true)
  await session.catchUp()
  await until(() => rows(session)[0] === 'ab')
})

/** Requests that fit fail the first time. */
function failOnce(fits: (path: string) => boolean): void {
  server.before = (path) => {
    if (!fits(path)) return
    server.before = () => undefined
    throw new TypeError('network')
  }
}

const many = Array.from({ length: 90 }, (_, at) => `row ${at}`)

test('a thread goes on when its older part could not be loaded at once, and that comes later', async () => {
  server.tell('s', ...many.map(row))
  failOnce((path) => path.includes('before='))
  const session = new LiveSession('s')
  const whole = session.load()
  await until(() => session.loaded && server.asked.length === 2)
  for (const told of server.tell('s', row('news'))) session.receive(told)
  await until(() => rows(session).includes('news'))
  await whole
  expect(rows(session)).toEqual([...many, 'news'])
})

test('a thread goes on when it could not be loaded anew', async () => {
  server.tell('s', row('before'))
  const session = await loaded()
  failOnce(() => true)
  await session.reload()
  for (const told of server.tell('s', row('news'))) session.receive(told)
  await until(() => rows(session).includes('news'))
  await until(() => session.error === null)
})

test('the older part that was asked for before a thread was loaded anew does not count', async () => {
  server.tell('s', ...many.map(row))
  let open = () => undefined as void
  const late = new Promise<void>((resolve) => { open = resolve })
  server.before = (path) => (path.includes('before=') ? late : undefined)
  const session = new LiveSession('s')
  const first = session.load()
  await until(() => server.asked.length === 2)
  server.before = () => undefined
  await session.reload()
  open()
  await first
  expect(rows(session)).toEqual(many)
})

test('a row that changes while the older part is on its way is there once', async () => {
  const call = (status: string): Event => ({ type: 'tool_call', toolCallId: 'c', title: 'Build', status })
  server.tell('s', call('in_progress'), ...many.map(row))
  const session = new LiveSession('s')
  let sent = false
  server.before = (path) => {
    if (sent || !path.includes('before=')) return
    sent = true
    for (const told of server.tell('s', call('completed'))) session.receive(told)
    return until(() => session.state.lastSeq === 92)
  }
  await session.load()
  const calls = session.state.entries.filter((entry) => entry.type === 'tool_call')
  expect(calls.map(({ status }) => status)).toEqual(['completed'])
  expect(session.state.entries).toHaveLength(91)
})

test('a thread that could never be loaded is asked for again when the server is back', async () => {
  server.tell('s', row('here'))
  failOnce(() => true)
  const session = await loaded()
  expect(session.error).not.toBeNull()
  await session.catchUp()
  expect(rows(session)).toEqual(['here'])
})

test('a question has arrived when this tab hears of it, in whatever way', async () => {
  server.tell('s', question('loaded'))
  const before = performance.now()
  const session = await loaded()
  expect([...session.arrivals.keys()]).toEqual(['loaded'])
  server.tell('s', question('filled'))
  await session.catchUp()
  expect([...session.arrivals.keys()]).toEqual(['loaded', 'filled'])
  for (const told of server.tell('s', question('told'))) session.receive(told)
  await until(() => session.arrivals.size === 3)
  const times = [...session.arrivals.values()]
  expect(times.every((time) => time >= before)).toBe(true)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
})

test('what was filled in of a question is forgotten when that is settled, by whomever', async () => {
  server.tell('s', question('q'), question('other'))
  const session = await loaded()
  session.filled.set('q', new Map([['name', 'Ada']]))
  session.filled.set('other', new Map([['name', 'Bob']]))
  const settled: Event = { type: 'permission_settled', requestId: 'q', optionId: null, decision: 'deny' } as unknown as Event
  for (const told of server.tell('s', settled)) session.receive(told)
  await until(() => session.arrivals.size === 1)
  expect([...session.filled.keys()]).toEqual(['other'])
})

const large = (at: number) => row(`${at} ${'x'.repeat(300_000)}`)
const numbers = (session: LiveSession) => rows(session).map((text) => Number(text.split(' ')[0]))

test('older rows are loaded as far as there is room, and then when somebody looks back', async () => {
  server.tell('s', ...Array.from({ length: 90 }, (_, at) => large(at)))
  const session = await loaded()
  expect(session.first).toBe(50)
  expect(numbers(session)[0]).toBe(50)
  expect(session.canLookBack).toBe(true)
  await session.lookBack()
  expect(numbers(session)).toEqual(Array.from({ length: 90 }, (_, at) => at))
  expect(session.canLookBack).toBe(false)
  // What was loaded so stays when something happens.
  for (const told of server.tell('s', large(90))) session.receive(told)
  await until(() => session.state.entries.length === 91)
  expect(session.first).toBe(0)
})

test('older rows that are asked for twice at a time are there once', async () => {
  server.tell('s', ...Array.from({ length: 600 }, (_, at) => row(`row ${at}`)))
  const open: (() => void)[] = []
  server.before = () => (server.asked.length > 1 ? new Promise((resolve) => { open.push(resolve) }) : undefined)
  const session = new LiveSession('s')
  const loading = session.load()
  await until(() => open.length === 1)
  const looking = session.lookBack()
  await until(() => open.length === 2)
  server.before = () => undefined
  for (const resolve of open) resolve()
  await Promise.all([loading, looking])
  expect(rows(session)).toEqual(Array.from({ length: 600 }, (_, at) => `row ${at}`))
  expect(session.first).toBe(0)
})

test('a tab that is left open holds no more of a thread than the server', async () => {
  server.tell('s', row('first'))
  const session = await loaded()
  for (let at = 0; at < 200; at++) for (const told of server.tell('s', large(at))) session.receive(told)
  await until(() => session.state.lastSeq === 201)
  expect(session.state.size).toBeLessThan(21 * 1024 * 1024)
  expect(session.first + session.state.entries.length).toBe(201)
  expect(numbers(session).at(-1)).toBe(199)
})

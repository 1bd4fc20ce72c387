// The service worker: what it shows for a push, and what a tap or an answer does.

import code from '../public/sw.js?raw'
import { beforeEach, expect, test } from 'vitest'

interface Shown { title: string; options: { body: string; tag: string; actions: { action: string }[]; data: Told } }
interface Told { key?: string; session?: string; request?: string; allow?: string; reject?: string; title?: string; body?: string }
interface Asked { path: string; headers: Record<string, string>; body: string }

class Worker {
  shown: Shown[] = []
  asked: Asked[] = []
  opened: string[] = []
  messages: unknown[] = []
  windows: { postMessage: (message: unknown) => void; focus: () => void }[] = []
  status = 200
  private readonly listeners = new Map<string, (event: unknown) => void>()

  constructor() {
    const self = {
      addEventListener: (name: string, listener: (event: unknown) => void) => this.listeners.set(name, listener),
      registration: { showNotification: async (title: string, options: Shown['options']) => void this.shown.push({ title, options }) },
      clients: { matchAll: async () => this.windows, openWindow: async (place: string) => void this.opened.push(place) },
    }
    const fetch = async (path: string, { headers, body }: Asked) => {
      this.asked.push({ path, headers, body })
      return { ok: this.status < 300, status: this.status }
    }
    new Function('self', 'fetch', 'indexedDB', code)(self, fetch, storage)
  }

  async happens(name: string, event: object): Promise<void> {
    let work: unknown
    this.listeners.get(name)?.({ ...event, waitUntil: (promise: unknown) => { work = promise } })
    await work
  }

  async pushed(told: unknown): Promise<void> {
    await this.happens('push', { data: { json: () => (told instanceof Error ? raise(told) : told) } })
  }

  async clicked(action: string, data: Told): Promise<void> {
    await this.happens('notificationclick', { action, notification: { close: () => undefined, data } })
  }
}

function raise(error: Error): never {
  throw error
}

/** As much of IndexedDB as one read needs. */
const storage = {
  open() {
    const asking: { result?: string; onsuccess?: () => void } = {}
    const store = { get: () => (queueMicrotask(() => { asking.result = 'the-token'; asking.onsuccess?.() }), asking) }
    const opening: { result: object; onsuccess?: () => void } = { result: { transaction: () => ({ objectStore: () => store }), close: () => undefined } }
    queueMicrotask(() => opening.onsuccess?.())
    return opening
  },
}

const TOLD = { key: 's/1:7', session: 's/1', request: 'r 1', title: 'Fix', body: 'make', allow: 'yes', reject: 'no' }
let worker: Worker
beforeEach(() => { worker = new Worker() })

test('a push is shown once, with the answers that it offers', async () => {
  await worker.pushed(TOLD)
  const [{ title, options }] = worker.shown as [Shown]
  expect([title, options.body, options.tag]).toEqual(['Fix', 'make', 's/1:7'])
  expect(options.actions.map(({ action }) => action)).toEqual(['allow', 'reject'])
})

test('without content there is nothing to allow', async () => {
  const { allow: _, ...rest } = TOLD
  await worker.pushed(rest)
  expect(worker.shown[0]?.options.actions.map(({ action }) => action)).toEqual(['reject'])
})

test('something is shown for a push that cannot be read', async () => {
  await worker.pushed(new Error('not JSON'))
  expect(worker.shown[0]?.title).toBe('Dragoman')
})

test('an answer goes to the question it is for, with the token', async () => {
  await worker.clicked('allow', TOLD)
  await worker.clicked('reject', TOLD)
  expect(worker.asked.map(({ path }) => path)).toEqual(['/api/sessions/s%2F1/permissions/r%201', '/api/sessions/s%2F1/permissions/r%201'])
  expect(worker.asked.map(({ body }) => JSON.parse(body))).toEqual([{ optionId: 'yes' }, { optionId: 'no' }])
  expect(worker.asked[0]?.headers['Authorization']).toBe('Bearer the-token')
  expect([worker.shown, worker.opened]).toEqual([[], []])
})

test('an answer that did not count says so, and leads to the question', async () => {
  worker.status = 409
  await worker.clicked('allow', TOLD)
  expect(worker.shown[0]?.options.body).toBe('It was already answered.')
  await worker.clicked('', worker.shown[0]?.options.data ?? {})
  expect(worker.opened).toEqual(['/#/s/s%2F1/q/r%201'])
})

test('a tap goes to the window there is, else to a new one', async () => {
  await worker.clicked('', TOLD)
  expect(worker.opened).toEqual(['/#/s/s%2F1/q/r%201'])
  worker.windows = [{ postMessage: (message) => worker.messages.push(message), focus: () => undefined }]
  await worker.clicked('', { session: 's' })
  expect(worker.messages).toEqual([{ place: '#/s/s' }])
  expect(worker.opened).toHaveLength(1)
})

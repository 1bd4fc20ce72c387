import { beforeEach, expect, test, vi } from 'vitest'
import type { Content } from '../src/core/generated/content'
import { attachedTo, edited, wordsOf } from '../src/core/session/queued'
import { openWindow } from './browser'

openWindow()
const { addToDraft, draft, giveBack, keepDraft } = await import('../src/ui/composer/drafts')
const { rescueEdits } = await import('../src/ui/composer/queue_edits')
const { attachmentsOf } = await import('../src/ui/composer/attachments')
const { LiveSession } = await import('../src/live/session')

beforeEach(openWindow)

test('what could not be sent stands before what was typed since', () => {
  keepDraft('s', 'what I wrote next')
  giveBack('s', 'prompt A')
  expect(draft('s')).toBe('prompt A\n\nwhat I wrote next')
})

test('what could not be sent is as it was when nothing was typed since', () => {
  giveBack('s', 'line one\nline two ')
  expect(draft('s')).toBe('line one\nline two ')
})

test('what is added stands behind what was typed', () => {
  keepDraft('s', 'first')
  addToDraft('s', 'second')
  expect(draft('s')).toBe('first\n\nsecond')
})

const file: Content = { type: 'resource', uri: 'file:///up/note.txt', content: 'hello!' }
const link: Content = { type: 'resource_link', uri: 'file:///up/film.mov', name: 'film.mov' }
const mention: Content = { type: 'resource_link', uri: 'file:///w/a%20b.py', name: 'a b.py' }
const queued: Content[] = [{ type: 'text', text: 'line one\nsee @"a b.py"' }, mention, file, link]

test('one edits the words of a queued prompt, not the text of its files', () => {
  expect(wordsOf(queued)).toBe('line one\nsee @"a b.py"')
})

test('an edited prompt keeps its files, and its mentions are found anew', () => {
  expect(attachedTo(queued)).toEqual([file, link])
  expect(edited(queued, 'other')).toEqual({ text: 'other', content: [file, link] })
  expect(edited([{ type: 'text', text: 'x' }], 'other')).toEqual({ text: 'other' })
})

test('an edit of a prompt that has left the queue goes to the composer', () => {
  const session = new LiveSession('s')
  session.loaded = true
  session.state.queue = [{ id: 'q', content: queued, terms: null, steer: null }]
  session.edits.set('q', { before: 'old', text: 'new words' })
  session.edits.set('untouched', { before: 'same', text: 'same' })
  expect(rescueEdits(session)).toBe(false)
  expect(draft('s')).toBe('')
  session.state.queue = []
  expect(rescueEdits(session)).toBe(true)
  expect(draft('s')).toBe('new words')
  expect(rescueEdits(session)).toBe(false)
})

test('attachments stay with their session, and come back when they could not be sent', async () => {
  vi.stubGlobal('fetch', async () => new Response(JSON.stringify({ uri: 'upload:1', name: 'a', mimeType: '', size: 1 })))
  attachmentsOf('s').add([new File(['x'], 'note.txt')])
  await vi.waitFor(() => expect(attachmentsOf('s').busy).toBe(false))
  const { items } = attachmentsOf('s')
  expect(items.map(({ name }) => name)).toEqual(['note.txt'])
  expect(attachmentsOf('other').items).toEqual([])
  attachmentsOf('s').clear()
  attachmentsOf('s').restore(items)
  expect(attachmentsOf('s').items).toEqual(items)
})

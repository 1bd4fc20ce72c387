import { beforeEach, expect, test, vi } from 'vitest'
import { openWindow } from './browser'

vi.mock('../src/live/tab_link', () => ({ listen: () => undefined }))

beforeEach(() => {
  vi.resetModules()
  openWindow()
  const matches = () => Object.assign(new EventTarget(), { matches: false })
  Object.assign(window, { matchMedia: matches })
  vi.stubGlobal('location', { hash: '#/s/one', origin: '', pathname: '' })
  vi.stubGlobal('navigator', { platform: '' })
})

test('the help lists every key that does something, each once', async () => {
  const { SHORTCUTS } = await import('../src/ui/shell/keys')
  const listed = SHORTCUTS.map(({ keys }) => keys)
  expect(new Set(listed).size).toBe(listed.length)
  for (const { keys, run } of SHORTCUTS) {
    for (const key of Object.keys(run ?? {})) expect(key === keys || keys.split(' ').includes(key)).toBe(true)
  }
})

test('the palette names keys that are in the table', async () => {
  const { SHORTCUTS } = await import('../src/ui/shell/keys')
  const { actions } = await import('../src/ui/shell/actions')
  const named = actions().flatMap(({ key }) => key ?? [])
  expect(named).toContain('Esc Esc')
  expect(SHORTCUTS.map(({ keys }) => keys)).toEqual(expect.arrayContaining(named))
})

test('a permission card takes the digits that the table lists', async () => {
  const { SHORTCUTS, answerNumber } = await import('../src/ui/shell/keys')
  expect(SHORTCUTS.map(({ keys }) => keys)).toContain('1 to 9')
  expect(['1', '9', '0', 'a', '12'].map(answerNumber)).toEqual([1, 9, null, null, null])
})

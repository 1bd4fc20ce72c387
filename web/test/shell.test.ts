import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openWindow, resize } from './browser'

beforeEach(() => {
  vi.resetModules()
  vi.useFakeTimers()
  openWindow()
})
afterEach(() => vi.useRealTimers())

test('a failure is not shown any more once one goes elsewhere, closes its dialog, or has had time to read it', async () => {
  const { shell } = await import('../src/ui/shell/shell')
  shell.fail(new Error('no'))
  expect(shell.toast?.text).toBe('no')
  window.dispatchEvent(new Event('hashchange'))
  expect(shell.toast).toBeNull()
  shell.open({ name: 'new' })
  shell.fail(new Error('no'))
  shell.set({ drawer: true })
  expect(shell.toast).not.toBeNull()
  shell.set({ dialog: null })
  expect(shell.toast).toBeNull()
  shell.fail(new Error('no'))
  vi.advanceTimersByTime(20_000)
  expect(shell.toast).toBeNull()
})

test('what went well is said across a change of screens', async () => {
  const { shell } = await import('../src/ui/shell/shell')
  shell.say('Deleted.')
  window.dispatchEvent(new Event('hashchange'))
  expect(shell.toast?.text).toBe('Deleted.')
})

test('the side pane does not cover the thread when the window becomes narrow, and is back when it is wide', async () => {
  const { shell } = await import('../src/ui/shell/shell')
  expect(shell.pane).toBe(true)
  resize(false)
  expect(shell.pane).toBe(false)
  resize(true)
  expect(shell.pane).toBe(true)
  shell.set({ pane: false })
  resize(false)
  resize(true)
  expect(shell.pane).toBe(false)
})

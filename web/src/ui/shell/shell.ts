// The state of the window itself: its dialog, the side pane, toasts.

import { ApiError, type Choices, type Sharer } from '../../live/api'
import { Signal } from '../../live/signal'

export type Dialog =
  | { name: 'new'; cwd?: string; agent?: string; prompted?: boolean }
  | { name: 'import' | 'help' | 'palette' }
  | { name: 'rename' | 'delete' | 'fork'; session: string }
  | { name: 'signin'; agent: string; settle: (signedIn: boolean) => void }
  | { name: 'kill'; session: string; others: Sharer[] }
  | { name: 'conflicts'; reasons: Record<string, string>; cwd: string; again: (choices: Choices) => void }
  | { name: 'rewind'; session: string; turnId: string }

export type PaneTab = 'plan' | 'changes' | 'terminals' | 'raw' | 'info'

const GOOD_MS = 5_000
const BAD_MS = 15_000

/** Whether the side pane fits next to the thread; else it covers the thread. */
const ROOM = window.matchMedia('(min-width: 1200px)')

class Shell {
  dialog: Dialog | null = null
  pane = ROOM.matches
  tab: PaneTab = 'plan'
  /** On a narrow screen: the list of sessions, or what is open. */
  drawer = false
  find = false
  /** The session one is about to write in: its composer takes the focus when it is there. */
  writing: string | null = null
  toast: { text: string; bad: boolean } | null = null
  /** Toasts aloud by screen readers: politely, or at once. */
  polite = ''
  urgent = ''
  readonly signal = new Signal()
  private timer: ReturnType<typeof setTimeout> | undefined

  set(change: Partial<Pick<Shell, 'dialog' | 'pane' | 'tab' | 'drawer' | 'find' | 'writing' | 'polite' | 'urgent'>>): void {
    // What went wrong in a dialog is over with it.
    if (change.dialog === null && this.dialog !== null) this.forgive()
    if (change.dialog !== undefined && this.dialog?.name === 'signin') this.dialog.settle(false)
    Object.assign(this, change)
    this.signal.emit()
  }

  open(dialog: Dialog): void {
    this.set({ dialog })
  }

  say(text: string, bad = false): void {
    this.toast = { text, bad }
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.hush(), bad ? BAD_MS : GOOD_MS)
    this.signal.emit()
  }

  /** Navigating away dismisses a failure. */
  forgive(): void {
    if (this.toast?.bad) this.hush()
  }

  hush(): void {
    this.toast = null
    this.signal.emit()
  }

  /** Have screen readers say something, also if it is what they said last. */
  announce(how: 'polite' | 'urgent', text: string): void {
    this.set({ [how]: '' })
    setTimeout(() => this.set({ [how]: text }), 50)
  }

  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true)
  }
}

export const shell = new Shell()

// A window that becomes too narrow for the pane next to the thread shows the thread.
let wasOpen = shell.pane
ROOM.addEventListener('change', ({ matches }) => {
  if (!matches) wasOpen = shell.pane
  shell.set({ pane: matches && (wasOpen || shell.pane) })
})

window.addEventListener('hashchange', () => shell.forgive())

/** Run something that may fail, and say so if it does. */
export async function attempt<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    shell.fail(error)
    return null
  }
}

/** The same for what may need a sign-in first: the ways to do that are shown, and then it is done again. */
export async function attemptSignedIn<T>(agent: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'auth_required') shell.fail(error)
    else if (await signedIn(agent)) return attempt(work())
    return null
  }
}

/** Whether a person signed in in the dialog. */
function signedIn(agent: string): Promise<boolean> {
  return new Promise((resolve) => shell.open({ name: 'signin', agent, settle: resolve }))
}

/** The same for an answer, which may already have been given elsewhere. */
export async function attemptAnswer<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ApiError && error.code === 'settled') shell.say('Already answered in another window.', true)
    else shell.fail(error)
    return null
  }
}

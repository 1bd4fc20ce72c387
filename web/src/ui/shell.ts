// What the window itself shows beside the sessions: one dialog, the side pane, short messages.

import { Signal } from '../live/signal'

export type Dialog =
  | { name: 'new'; cwd?: string }
  | { name: 'import' | 'help' | 'palette' }
  | { name: 'rename' | 'delete' | 'fork'; session: string }

export type PaneTab = 'plan' | 'changes' | 'terminals' | 'raw' | 'info'

class Shell {
  dialog: Dialog | null = null
  pane = window.innerWidth >= 1200
  tab: PaneTab = 'plan'
  /** On a narrow screen: the list of sessions, or what is open. */
  drawer = false
  find = false
  toast: { text: string; bad: boolean } | null = null
  /** Said aloud by screen readers: politely, or at once. */
  polite = ''
  urgent = ''
  readonly signal = new Signal()
  private timer: ReturnType<typeof setTimeout> | undefined

  set(change: Partial<Pick<Shell, 'dialog' | 'pane' | 'tab' | 'drawer' | 'find' | 'polite' | 'urgent'>>): void {
    Object.assign(this, change)
    this.signal.emit()
  }

  open(dialog: Dialog): void {
    this.set({ dialog })
  }

  say(text: string, bad = false): void {
    this.toast = { text, bad }
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.toast = null
      this.signal.emit()
    }, bad ? 8000 : 3000)
    this.signal.emit()
  }

  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true)
  }
}

export const shell = new Shell()

/** Run something that may fail, and say so if it does. */
export async function attempt<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    shell.fail(error)
    return null
  }
}

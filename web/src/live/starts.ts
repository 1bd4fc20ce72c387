// Sessions that are being started. Their words are kept in this tab until a session has them: an agent
// may take its time, want a sign-in, or not start at all.

import type { Json } from '../core/generated/content'
import { ApiError, sessions, type NewSession, type Prompt, type Summary } from './api'
import { Signal } from './signal'

export type Stage = 'starting' | 'failed' | 'interrupted'

/** What someone asked for, and how far it is. */
export interface Start {
  key: string
  wish: NewSession
  prompt: Prompt
  /** When the agent was last asked to start, in milliseconds. */
  at: number
  stage: Stage
  failure: { code: string; message: string } | null
}

let made = 0
const KEY = 'dragoman.starts'

class Starts {
  readonly changed = new Signal()
  private readonly all = new Map<string, Start>(kept().map((start) => [start.key, start]))
  /** Called with the session that came of a start, before the start is forgotten. */
  ready: (start: Start, session: Summary) => void = () => undefined

  list(): Start[] {
    return [...this.all.values()]
  }

  find(key: string): Start | null {
    return this.all.get(key) ?? null
  }

  begin(wish: NewSession, prompt: Prompt): Start {
    const start: Start = { key: `${Date.now()}-${++made}`, wish, prompt, at: Date.now(), stage: 'starting', failure: null }
    this.put(start)
    void this.run(start)
    return start
  }

  again(key: string): void {
    const start = this.all.get(key)
    if (start === undefined || start.stage === 'starting') return
    const next: Start = { ...start, at: Date.now(), stage: 'starting', failure: null }
    this.put(next)
    void this.run(next)
  }

  /** Nobody waits for it now; what comes of it is removed. The words are the caller's. */
  drop(key: string): Start | null {
    const start = this.all.get(key) ?? null
    this.all.delete(key)
    this.save()
    return start
  }

  private async run(start: Start): Promise<void> {
    const told = await sessions.create(start.wish).catch((error: unknown) => failureOf(error))
    const waits = this.all.get(start.key) === start
    if (told instanceof ApiError) {
      if (waits) this.put({ ...start, stage: 'failed', failure: { code: told.code, message: told.message } })
      return
    }
    if (!waits) return void sessions.remove(told.id).catch(() => undefined)
    this.ready(start, told)
    this.drop(start.key)
  }

  private put(start: Start): void {
    this.all.set(start.key, start)
    this.save()
  }

  private save(): void {
    sessionStorage.setItem(KEY, JSON.stringify(this.list()))
    this.changed.emit()
  }
}

/** Those of before: a page that was left no longer hears what came of them. */
function kept(): Start[] {
  try {
    const told = JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as Start[]
    return told.map((start) => (start.stage === 'starting' ? { ...start, stage: 'interrupted' } : start))
  } catch {
    return []
  }
}

function failureOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'failed', String(error))
}

/** The words of a prompt, and how many files go with it. */
export function wordsIn({ text, content }: Prompt): { text: string; files: number } {
  return { text: text ?? '', files: (content ?? ([] as Json[])).length }
}

export const starts = new Starts()

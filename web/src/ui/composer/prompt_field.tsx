// What every prompt field does: its draft, its growth, its attachments.

import { useEffect, useRef, useState, type ClipboardEvent, type RefObject } from 'react'
import type { Prompt } from '../../live/api'
import type { Attachments } from './attachments'
import { Icon } from '../common/icons'
import { draft, keepDraft } from './drafts'

// A keyboard on glass has no Shift Enter: there Enter begins a new line.
export const THUMBS = window.matchMedia('(hover: none) and (pointer: coarse)')

export function promptOf(text: string, attachments: Attachments): Prompt {
  const content = attachments.items.flatMap(({ done }) => (done === null ? [] : [{ type: 'upload', uri: done.uri }]))
  return content.length ? { text, content } : { text }
}

/** Of a session, or of one that is still to begin. */
export function useDraft(session: string): [string, (text: string) => void] {
  const [text, set] = useState(() => draft(session))
  useEffect(() => {
    set(draft(session))
    const changed = (event: Event) => {
      if ((event as CustomEvent).detail === session) set(draft(session))
    }
    window.addEventListener('draft', changed)
    return () => window.removeEventListener('draft', changed)
  }, [session])
  const keep = (next: string) => {
    set(next)
    keepDraft(session, next)
  }
  return [text, keep]
}

export function useGrowing(field: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const area = field.current
    if (area === null) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, window.innerHeight * 0.4)}px`
  }, [text])
}

export function pasted(event: ClipboardEvent, attachments: Attachments): void {
  if (event.clipboardData.files.length === 0) return
  event.preventDefault()
  attachments.add(event.clipboardData.files)
}

export function AttachButton({ attachments }: { attachments: Attachments }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <button type="button" className="ghost" title="Attach files" aria-label="Attach files" onClick={() => input.current?.click()}><Icon name="clip" /></button>
      <input ref={input} type="file" multiple hidden aria-label="Files to attach" onChange={(event) => {
        attachments.add([...(event.target.files ?? [])])
        event.target.value = ''
      }} />
    </>
  )
}

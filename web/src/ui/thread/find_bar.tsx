// Find in the transcript: over all entries, not only those that are in the page.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from 'react'
import { entryText } from '../../core/session/state'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { Icon } from '../common/icons'
import { shell } from '../shell/shell'

interface Props { session: LiveSession; show: (place: number) => void; scroller: RefObject<HTMLDivElement | null> }

export function FindBar({ session, show, scroller }: Props) {
  const version = useSignal(session.thread)
  const [query, setQuery] = useState('')
  const [at, setAt] = useState(0)
  const input = useRef<HTMLInputElement>(null)
  const found = useMemo(() => places(session, query), [session, query, version])
  useEffect(() => input.current?.select(), [])
  useEffect(() => {
    setAt(Math.max(0, found.length - 1))
    if (found.length) show(found.at(-1) ?? 0)
  }, [query])
  useHighlight(scroller, query)
  const move = (by: number) => {
    if (found.length === 0) return
    const next = (at + by + found.length) % found.length
    setAt(next)
    show(found[next] ?? 0)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') shell.set({ find: false })
    else if (event.key === 'Enter') move(event.shiftKey ? 1 : -1)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div className="find" role="search" aria-label="Find in transcript" onKeyDown={onKey}>
      <Icon name="search" />
      <input ref={input} autoFocus type="search" aria-label="Find in transcript" placeholder="Find in transcript" value={query} onChange={(e) => setQuery(e.target.value)} />
      <output>{query && (found.length ? `${at + 1} of ${found.length}` : 'no matches')}</output>
      <button type="button" className="ghost" aria-label="Previous match" onClick={() => move(-1)}><Icon name="up" /></button>
      <button type="button" className="ghost" aria-label="Next match" onClick={() => move(1)}><Icon name="down" /></button>
      <button type="button" className="ghost" aria-label="Close the find bar" onClick={() => shell.set({ find: false })}><Icon name="cross" /></button>
    </div>
  )
}

function places(session: LiveSession, query: string): number[] {
  const words = query.trim().toLowerCase()
  if (!words) return []
  const found: number[] = []
  session.state.entries.forEach((entry, place) => {
    if (entryText(entry).toLowerCase().includes(words)) found.push(place)
  })
  return found
}

/** Mark the words where they can be seen, without touching the page's elements. */
function useHighlight(scroller: RefObject<HTMLDivElement | null>, query: string): void {
  useEffect(() => {
    if (!('highlights' in CSS)) return
    const timer = setInterval(() => mark(scroller.current, query.trim().toLowerCase()), 200)
    return () => {
      clearInterval(timer)
      CSS.highlights.delete('found')
    }
  }, [query])
}

function mark(root: HTMLElement | null, words: string): void {
  if (root === null || !words) return void CSS.highlights.delete('found')
  const ranges: Range[] = []
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null && ranges.length < 500; node = walker.nextNode()) {
    const text = (node.textContent ?? '').toLowerCase()
    for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) {
      const range = new Range()
      range.setStart(node, at)
      range.setEnd(node, at + words.length)
      ranges.push(range)
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges))
}

// The edge between the thread and the side pane: dragged, or moved by the arrow keys. Its place is kept in this browser.

import { useState, type KeyboardEvent, type PointerEvent } from 'react'

const KEY = 'dragoman.pane'
const LEAST = 320
const USUAL = 420
const STEP = 40

function most(): number {
  return Math.max(LEAST, window.innerWidth - 280 - 420)
}

function bounded(width: number): number {
  return Math.round(Math.min(most(), Math.max(LEAST, width)))
}

export function usePaneWidth(): [number, (width: number) => void] {
  const [width, set] = useState(() => Number(localStorage.getItem(KEY)) || USUAL)
  const keep = (next: number) => {
    set(bounded(next))
    localStorage.setItem(KEY, String(bounded(next)))
  }
  return [bounded(width), keep]
}

export function PaneEdge({ width, change }: { width: number; change: (width: number) => void }) {
  const drag = (event: PointerEvent<HTMLElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) change(window.innerWidth - event.clientX)
  }
  const onKey = (event: KeyboardEvent) => {
    const goals: Partial<Record<string, number>> = { ArrowLeft: width + STEP, ArrowRight: width - STEP, Home: most(), End: LEAST }
    const goal = goals[event.key]
    if (goal === undefined) return
    event.preventDefault()
    event.stopPropagation()
    change(goal)
  }
  return (
    <div
      className="paneedge" role="separator" aria-orientation="vertical" aria-label="Width of the side pane" aria-valuenow={width} aria-valuemin={LEAST} aria-valuemax={most()} tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)} onPointerMove={drag} onKeyDown={onKey} onDoubleClick={() => change(USUAL)}
    />
  )
}

// A modal dialog: the browser's own, which keeps the focus inside and gives it back afterwards.

import { useEffect, useRef, type ReactNode } from 'react'
import { Icon } from './icons'
import { Toasts } from './toasts'
import { shell } from '../shell/shell'

export function Modal({ title, children, className = '' }: { title: string; children: ReactNode; className?: string }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    // The browser begins with the first button, which closes; one came to do something.
    ref.current?.querySelector<HTMLElement>('[data-first]')?.focus()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  const close = () => shell.set({ dialog: null })
  return (
    <dialog
      ref={ref}
      className={`modal ${className}`}
      aria-label={title}
      onClose={close}
      onMouseDown={(event) => event.target === ref.current && close()}
    >
      <header>
        <h2>{title}</h2>
        <button type="button" className="ghost" aria-label="Close" onClick={close}><Icon name="cross" /></button>
      </header>
      {children}
      <Toasts />
    </dialog>
  )
}

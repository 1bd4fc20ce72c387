// A choice of one: a button that says what is chosen, and a list with descriptions over the page. A long
// list has a field that filters it.

import { useEffect, useId, useLayoutEffect, useRef, useState, type CSSProperties, type KeyboardEvent, type ReactNode } from 'react'
import { createPortal } from 'react-dom'
import { optionsFor, type PickerOption } from '../../core/picking'
import { reveal } from '../../core/text/safe_text'
import { Icon } from './icons'
import { Plain } from './plain_text'

const SEARCHED = 8

interface Props {
  label: string
  value: string
  options: PickerOption[]
  onChange: (value: string) => void
  id?: string | undefined
  /** Before the words, on the button and at each option. */
  mark?: (value: string) => ReactNode
  /** Below the options. */
  footer?: (close: () => void) => ReactNode
  disabled?: boolean
}

export function Picker({ label, value, options, onChange, id, mark, footer, disabled = false }: Props) {
  const [open, setOpen] = useState(false)
  const opener = useRef<HTMLButtonElement>(null)
  const chosen = options.find((option) => option.value === value)
  const close = () => {
    setOpen(false)
    opener.current?.focus()
  }
  const pick = (next: string) => {
    close()
    if (next !== value) onChange(next)
  }
  const words = chosen?.name ?? value
  return (
    <>
      <button
        ref={opener} id={id} type="button" className="picker" disabled={disabled} aria-haspopup="listbox" aria-expanded={open}
        title={reveal([`${label}: ${words}`, chosen?.note].filter(Boolean).join('. '))} data-value={value} onClick={() => setOpen(!open)}
      >
        <span className="hidden"><Plain text={label} />: </span>{mark?.(value)}<span className="words"><Plain text={words} /></span> <Icon name="chevron" className="turned" />
      </button>
      {open && <Popover opener={opener.current} close={() => setOpen(false)} dismiss={close} label={label}>
        <Options label={label} value={value} options={options} pick={pick} mark={mark} />
        {footer?.(close)}
      </Popover>}
    </>
  )
}

interface PopoverProps { opener: HTMLElement | null; label: string; children: ReactNode; close: () => void; dismiss: () => void }

const GAP = 4
const MARGIN = 8
const LEAST_PX = 220

/** Over everything, next to what opened it, where there is more room. A dialog is above the page: it goes into it. */
export function Popover({ opener, label, children, close, dismiss }: PopoverProps) {
  const box = useRef<HTMLDivElement>(null)
  const [place, setPlace] = useState<CSSProperties>({ visibility: 'hidden' })
  useLayoutEffect(() => {
    if (opener === null || box.current === null) return
    setPlace(placeAt(opener.getBoundingClientRect(), box.current.offsetWidth))
    box.current.querySelector<HTMLElement>('[data-first]')?.focus()
  }, [opener])
  useEffect(() => {
    const outside = (event: Event) => {
      const target = event.target as Node
      if (!box.current?.contains(target) && !opener?.contains(target)) close()
    }
    // Before the page and a dialog see it: the innermost closes first.
    const escape = (event: globalThis.KeyboardEvent) => {
      if (event.key !== 'Escape') return
      event.preventDefault()
      event.stopImmediatePropagation()
      dismiss()
    }
    document.addEventListener('pointerdown', outside)
    window.addEventListener('keydown', escape, true)
    window.addEventListener('resize', close)
    return () => {
      document.removeEventListener('pointerdown', outside)
      window.removeEventListener('keydown', escape, true)
      window.removeEventListener('resize', close)
    }
  }, [opener])
  const leave = (event: React.FocusEvent) => {
    const next = event.relatedTarget
    if (next instanceof Node && !box.current?.contains(next) && !opener?.contains(next)) close()
  }
  return createPortal(
    <div ref={box} className="popover" role="dialog" aria-label={label} style={place} onBlur={leave}>{children}</div>,
    opener?.closest('dialog') ?? document.body,
  )
}

function placeAt(at: DOMRect, width: number): CSSProperties {
  const below = window.innerHeight - at.bottom - GAP - MARGIN
  const above = at.top - GAP - MARGIN
  const left = Math.max(MARGIN, Math.min(at.left, window.innerWidth - width - MARGIN))
  return below >= LEAST_PX || below >= above
    ? { left, top: at.bottom + GAP, maxHeight: below }
    : { left, bottom: window.innerHeight - at.top + GAP, maxHeight: above }
}

interface OptionsProps { label: string; value: string; options: PickerOption[]; pick: (value: string) => void; mark?: ((value: string) => ReactNode) | undefined }

function Options({ label, value, options, pick, mark }: OptionsProps) {
  const list = useId()
  const [query, setQuery] = useState('')
  const shown = optionsFor(options, query)
  const [at, setAt] = useState(Math.max(0, shown.findIndex((option) => option.value === value)))
  const searched = options.length > SEARCHED
  useEffect(() => { document.getElementById(`${list}-${at}`)?.scrollIntoView({ block: 'nearest' }) }, [list, at])
  const move = (by: number) => {
    for (let next = at + by; next >= 0 && next < shown.length; next += by) if (!shown[next]?.disabled) return setAt(next)
  }
  const onKey = (event: KeyboardEvent) => {
    const option = shown[at]
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') move(event.key === 'ArrowDown' ? 1 : -1)
    else if (event.key === 'Home' && !searched) setAt(0)
    else if (event.key === 'End' && !searched) setAt(shown.length - 1)
    else if (event.key === 'Enter' || (event.key === ' ' && !searched)) {
      if (option !== undefined && !option.disabled) pick(option.value)
    } else if (!searched && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const next = shown.findIndex((each, place) => place !== at && !each.disabled && each.name.toLowerCase().startsWith(event.key.toLowerCase()))
      if (next < 0) return
      setAt(next)
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  const active = { 'aria-controls': list, 'aria-activedescendant': shown[at] ? `${list}-${at}` : undefined }
  return (
    <>
      {searched && <input
        type="text" role="combobox" aria-expanded="true" aria-label={`Filter: ${label}`} placeholder="Filter…" data-first="" value={query} spellCheck={false}
        {...active} onKeyDown={onKey} onChange={(event) => { setQuery(event.target.value); setAt(0) }}
      />}
      <ul
        id={list} role="listbox" aria-label={label} className="pickerlist"
        {...(searched ? { tabIndex: -1 } : { tabIndex: 0, 'data-first': '', onKeyDown: onKey, 'aria-activedescendant': active['aria-activedescendant'] })}
      >
        {shown.map((option, place) => (
          <li
            key={option.value} id={`${list}-${place}`} role="option" aria-selected={option.value === value} aria-disabled={option.disabled || undefined}
            className={`${place === at ? 'active' : ''} ${option.group && option.group !== shown[place - 1]?.group ? 'firstof' : ''}`}
            data-group={option.group && reveal(option.group)} onMouseMove={() => setAt(place)} onClick={() => { if (!option.disabled) pick(option.value) }}
          >
            {mark?.(option.value)}
            <span className="words"><Plain text={option.name} />{option.note && <small><Plain text={option.note} /></small>}</span>
            {option.value === value && <Icon name="check" />}
          </li>
        ))}
        {shown.length === 0 && <li className="empty" role="option" aria-selected={false} aria-disabled="true">No match.</li>}
      </ul>
    </>
  )
}

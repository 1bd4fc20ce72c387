// Ctrl-K: go to a session or a screen, or do something, by its name.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { titleOf } from '../../core/session/listing'
import { store } from '../../live/store'
import { actions, type Action } from './actions'
import { Icon, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { currentRoute, go, paths } from './route'
import { Toasts } from '../common/toasts'
import { shell } from './shell'

interface Item { key: string; head: string; icon: IconName; label: string; note: string; run: () => void }

// So many sessions that actions are still in sight; with nothing typed yet, only those used last.
const SESSIONS = 8
const RECENT = 4
const ACTIONS = 12

export function Palette() {
  const [query, setQuery] = useState('')
  const [chosen, setChosen] = useState(0)
  const dialog = useRef<HTMLDialogElement>(null)
  const items = useMemo(() => ranked(query), [query])
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus()
    }
  }, [])
  useEffect(() => {
    window.addEventListener('hashchange', close)
    return () => window.removeEventListener('hashchange', close)
  }, [])
  useEffect(() => { void document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: 'nearest' }) }, [chosen])
  const close = () => shell.set({ dialog: null })
  const run = (item: Item | undefined) => {
    close()
    item?.run()
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      setChosen((chosen + (event.key === 'ArrowDown' ? 1 : items.length - 1)) % Math.max(1, items.length))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(items[chosen])
    }
  }
  return (
    <dialog ref={dialog} className="modal palette" aria-label="Command palette" onClose={close} onMouseDown={(e) => e.target === dialog.current && close()} onKeyDown={onKey}>
      <input
        autoFocus type="text" role="combobox" aria-label="Find a session or command" aria-expanded="true" aria-controls="palettelist"
        aria-activedescendant={items[chosen] && `palette-${chosen}`} placeholder="Find a session or command…" value={query}
        onChange={(event) => { setQuery(event.target.value); setChosen(0) }}
      />
      <ul id="palettelist" role="listbox" aria-label="Results">
        {items.map((item, at) => (
          <li key={item.key} id={`palette-${at}`} role="option" aria-selected={at === chosen} className={item.head !== items[at - 1]?.head ? 'firstof' : ''} data-head={item.head} onClick={() => run(item)} onMouseMove={() => setChosen(at)}>
            <Icon name={item.icon} /> <span className="title"><Plain text={item.label} /></span> <small><Plain text={item.note} /></small>
          </li>
        ))}
        {items.length === 0 && <li className="empty">No matches.</li>}
      </ul>
      <Toasts />
    </dialog>
  )
}

function ranked(query: string): Item[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const fits = (item: Item) => words.every((word) => `${item.label} ${item.note}`.toLowerCase().includes(word))
  const sessions = sessionItems().filter(fits).slice(0, words.length ? SESSIONS : RECENT)
  const fitting = [...sessions, ...actions().map(actionItem).filter(fits).slice(0, words.length ? ACTIONS : undefined)]
  if (query.trim()) fitting.push({ key: 'search', head: 'Search', icon: 'search', label: `Search all sessions for “${query.trim()}”`, note: '', run: () => go(paths.search(query.trim())) })
  return fitting
}

/** Where one is already is nowhere to go. */
function sessionItems(): Item[] {
  const route = currentRoute()
  const here = route.screen === 'session' ? route.id : ''
  return [...store.summaries.values()]
    .filter((session) => !session.archived && session.id !== here)
    .sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))
    .map((session) => ({
      key: session.id,
      head: 'Sessions',
      icon: session.status === 'waiting' ? 'alert' : 'file',
      label: titleOf(session),
      note: `${session.agent} · ${session.cwd}`,
      run: () => go(paths.session(session.id)),
    }))
}

function actionItem(action: Action): Item {
  return { key: action.name, head: 'Actions', icon: action.icon, label: action.name, note: action.key ?? '', run: action.run }
}

// All sessions, by project; what needs a person stands out.

import { useEffect, useRef, useState, type KeyboardEvent, type MouseEvent, type RefObject } from 'react'
import { ago, plural } from '../../core/text/format'
import { leading } from '../../core/permissions/questions'
import { reveal } from '../../core/text/safe_text'
import { byProject, shownSessions, titleOf, type Filter, type Group } from '../../core/session/listing'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { archive } from './archive'
import { useCollapse } from '../common/collapse'
import { Icon } from '../common/icons'
import { NameTag } from './name_tag'
import { ErrorBoundary } from '../common/error_boundary'
import { Plain } from '../common/plain_text'
import { go, paths, useRoute } from '../shell/route'
import { shell } from '../shell/shell'
import { StatusMark } from '../common/status_mark'
import { currentFolder } from '../shell/actions'
import { beginSession } from '../start/wish'

const FILTERS: Filter[] = ['all', 'waiting', 'running', 'finished', 'archived']

export function Sidebar() {
  useSignal(store.list)
  const [filter, setFilter] = useState<Filter>('all')
  const [query, setQuery] = useState('')
  const [pointing, setPointing] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  // What fits is at the top.
  useEffect(() => { list.current?.scrollTo({ top: 0 }) }, [filter, query])
  useOneStop(list)
  const shown = useCalmOrder(shownSessions(store.summaries.values(), filter, query), pointing)
  return (
    <nav className="sidebar" aria-label="Sessions" onMouseEnter={() => setPointing(true)} onMouseLeave={() => setPointing(false)}>
      <div className="sidetop">
        <button type="button" className="primary grow" onClick={() => beginSession(currentFolder())}><Icon name="plus" /> New session</button>
        <button type="button" onClick={() => shell.open({ name: 'import' })} title="Import a session from an agent">Import</button>
      </div>
      <form className="sidesearch" role="search" onSubmit={(event) => { event.preventDefault(); if (query.trim()) go(paths.search(query.trim())) }}>
        <Icon name="search" />
        <input id="search" type="search" aria-label="Search sessions" placeholder="Filter or search" title="Press Enter to search all transcripts" value={query} onChange={(e) => setQuery(e.target.value)} />
      </form>
      <div className="filters" role="group" aria-label="Filter">
        {FILTERS.map((name) => (
          <button key={name} type="button" aria-pressed={filter === name} onClick={() => setFilter(name)}>
            {name}
          </button>
        ))}
      </div>
      <div className="groups" ref={list} onKeyDown={moveInList}>
        {byProject(shown).map((group) => <ProjectGroup key={group.cwd} group={group} />)}
        {shown.length === 0 && store.loaded && <Empty filter={filter} query={query} />}
      </div>
    </nav>
  )
}

/** One stop for the Tab key in the whole list: the session one is in, else the first. */
function useOneStop(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const links = [...list.current?.querySelectorAll<HTMLElement>('.session > a') ?? []]
    const stop = links.find((link) => link === document.activeElement) ?? links.find((link) => link.ariaCurrent === 'page') ?? links[0]
    for (const link of links) link.tabIndex = link === stop ? 0 : -1
  })
}

/** Arrows lead from session to session, and to the actions of one. */
function moveInList(event: KeyboardEvent<HTMLElement>): void {
  const { target, currentTarget } = event
  const row = target instanceof HTMLElement ? target.closest('.session') : null
  if (row === null || !(target instanceof HTMLElement) || target.closest('.menu')) return
  const links = [...currentTarget.querySelectorAll<HTMLElement>('.session > a')]
  const at = links.findIndex((link) => link.parentElement === row)
  const goals: Partial<Record<string, HTMLElement | null | undefined>> = {
    ArrowDown: links[at + 1], ArrowUp: links[at - 1], Home: links[0], End: links.at(-1), ArrowLeft: links[at],
    ArrowRight: row.querySelector<HTMLElement>('.rowmenu > button'),
  }
  const goal = goals[event.key]
  if (!goal) return
  event.preventDefault()
  goal.focus()
}

/** Newest first, but nothing moves under a pointer that is about to choose. */
function useCalmOrder(shown: Summary[], pointing: boolean): Summary[] {
  const order = useRef(new Map<string, number>())
  if (!pointing) order.current = new Map(shown.map((session, at) => [session.id, at]))
  const place = (session: Summary) => order.current.get(session.id) ?? -1
  return pointing ? [...shown].sort((a, b) => place(a) - place(b)) : shown
}

function Empty({ filter, query }: { filter: Filter; query: string }) {
  if (query) return <p className="empty">No matching titles. Press Enter to search the transcripts.</p>
  if (filter !== 'all') return <p className="empty">No session is {filter === 'waiting' ? 'waiting for you' : filter}.</p>
  return <p className="empty">No sessions yet. Start one, or import one from an agent.</p>
}

function ProjectGroup({ group }: { group: Group }) {
  const [open, toggle] = useCollapse(`group:${group.cwd}`, true)
  const waits = group.sessions.some(({ status }) => status === 'waiting')
  return (
    <section className="group">
      <h2 title={reveal(group.cwd)}>
        <button type="button" className="ghost folder" aria-expanded={open} onClick={toggle}><Icon name={open ? 'folder' : 'chevron'} /> <span className="name"><Plain text={group.name} /></span> <small>{group.sessions.length}</small>{!open && waits && <Icon name="alert" />}</button>
        <button type="button" className="ghost" aria-label={`New session in ${reveal(group.name)}`} title="New session here" onClick={() => beginSession(group.cwd)}><Icon name="plus" /></button>
      </h2>
      {open && <ul>{group.sessions.map((session) => <ErrorBoundary key={session.id} name="session" of={session}><SessionRow session={session} /></ErrorBoundary>)}</ul>}
    </section>
  )
}

function SessionRow({ session }: { session: Summary }) {
  const route = useRoute()
  const here = route.screen === 'session' && route.id === session.id
  const unread = store.unread(session) && !here
  const known = store.known(session.id)
  const asked = known === undefined ? 0 : leading(known.state.pending).length
  return (
    <li className={`session ${here ? 'here' : ''} ${unread ? 'unread' : ''}`}>
      <a href={paths.session(session.id)} aria-current={here ? 'page' : undefined} tabIndex={here ? 0 : -1} onClick={() => shell.set({ drawer: false })}>
        <StatusMark session={session} quiet />
        <span className="title"><Plain text={titleOf(session)} /></span>
        {session.parent !== null && <span className="forkmark" title="Forked from another session"><Icon name="fork" /><span className="hidden">fork</span></span>}
        <NameTag session={session} />
        <span className="meta">
          {asked > 0 && <span className="badge" title={`${plural(asked, 'question')} for you`}>{asked}<span className="hidden"> waiting</span></span>}
          {unread && <span className="dot" title="Unread"><span className="hidden">unread</span></span>}
          <span>{ago(session.updatedAt)}</span>
        </span>
      </a>
      <RowMenu session={session} />
    </li>
  )
}

// The height of the menu, including what is below the list on a narrow screen.
const MENU_PX = 240

function RowMenu({ session }: { session: Summary }) {
  const [open, setOpen] = useState<'up' | 'down' | null>(null)
  const opener = useRef<HTMLButtonElement>(null)
  // Back to where it was opened: a dialog gives the focus to what had it before.
  const shut = () => {
    opener.current?.focus()
    setOpen(null)
  }
  const choose = (work: () => void) => () => {
    shut()
    work()
  }
  const toggle = (event: MouseEvent) => {
    const below = window.innerHeight - event.currentTarget.getBoundingClientRect().bottom
    setOpen(open !== null ? null : below < MENU_PX ? 'up' : 'down')
  }
  return (
    <span className={`rowmenu ${open ? 'open' : ''}`} onBlur={(event) => { if (!event.currentTarget.contains(event.relatedTarget)) setOpen(null) }} onKeyDown={(e) => { if (e.key === 'Escape') shut() }}>
      <button ref={opener} type="button" className="ghost" tabIndex={open === null ? -1 : 0} aria-label={`Actions for ${reveal(titleOf(session))}`} aria-expanded={open !== null} onClick={toggle}><Icon name="dots" /></button>
      {open && (
        <span className={`menu ${open}`}>
          <button type="button" onClick={choose(() => shell.open({ name: 'rename', session: session.id }))}><Icon name="edit" /> Rename</button>
          <button type="button" onClick={choose(() => shell.open({ name: 'fork', session: session.id }))}><Icon name="fork" /> Fork</button>
          <button type="button" onClick={choose(() => void archive(session))}><Icon name="archive" /> {session.archived ? 'Restore' : 'Archive'}</button>
          <button type="button" onClick={choose(() => go(paths.replay(session.id)))}><Icon name="play" /> Replay</button>
          <button type="button" className="bad" onClick={choose(() => shell.open({ name: 'delete', session: session.id }))}><Icon name="trash" /> Delete</button>
        </span>
      )}
    </span>
  )
}

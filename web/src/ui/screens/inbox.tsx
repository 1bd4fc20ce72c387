// Everything that waits for a person, over all sessions: the list, oldest first, and next to it the one to
// decide on. Equal questions are answered together; after an answer comes the next.

import { useEffect, useRef, useState } from 'react'
import { askedBriefly, keyOf, nextOf, together } from '../../core/permissions/questions'
import { titleOf } from '../../core/session/listing'
import { ago, baseName } from '../../core/text/format'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store, type Waiting } from '../../live/store'
import { AgentMark } from '../common/agent_mark'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { AgentQuestions } from '../permissions/agent_questions'
import { paths } from '../shell/route'
import { PendingView } from '../thread/transcript'

type Group = Waiting[]

export function Inbox() {
  useSignal(store.list)
  const [apart, setApart] = useState<ReadonlySet<string>>(new Set())
  const main = useRef<HTMLElement>(null)
  const groups = together(store.waiting(), apart)
  const { at, since, choose } = useChoice(groups)
  const unclear = store.unclear()
  const group = groups[at]
  useFirstCard(main, groups.length > 0)
  return (
    <main ref={main} className={`screen inbox ${groups.length > 1 ? 'many' : ''}`} aria-label="Inbox" tabIndex={-1}>
      <h1>Inbox</h1>
      {!store.loaded && <p className="quiet">Loading…</p>}
      {store.loaded && groups.length === 0 && unclear.length === 0 && store.outside.length === 0 && <AllDone />}
      {[...new Set(store.outside.map(({ agent }) => agent))].map((agent) => (
        <section key={agent} className="asked outside">
          <h2><AgentMark name={agent} /> <Plain text={agent} /> <small>outside of any session</small></h2>
          <AgentQuestions agent={agent} />
        </section>
      ))}
      {groups.length > 1 && <List groups={groups} at={at} choose={choose} />}
      {group !== undefined && <Question group={group} at={at} of={groups.length} since={since} choose={choose} split={() => setApart(new Set([...apart, ...group.map(keyOf)]))} />}
      {unclear.map((session) => <Unclear key={session.id} session={session} />)}
    </main>
  )
}

function AllDone() {
  return (
    <div className="empty big">
      <Icon name="check" />
      <p>Nothing needs your answer. Permission requests and questions from all sessions appear here, the oldest first.</p>
      <p className="quiet forkeys"><kbd>g</kbd> <kbd>i</kbd> comes back here; <kbd>1</kbd> to <kbd>9</kbd> answer, <kbd>j</kbd> <kbd>k</kbd> go to the next and the previous.</p>
    </div>
  )
}

function keyOfGroup(group: Group): string {
  return group.slice(0, 1).map(keyOf).join()
}

/** Which of them one decides on: it stays while others come, and what follows takes its place when it goes. */
function useChoice(groups: Group[]): { at: number; since: number; choose: (at: number) => void } {
  const [chosen, setChosen] = useState<string | null>(null)
  const last = useRef({ key: '', at: 0, since: 0 })
  const keys = groups.map(keyOfGroup)
  const at = nextOf(keys, chosen ?? last.current.key, last.current.at)
  const key = keys[at] ?? ''
  // An answer that was meant for the one before must not hit the one that takes its place.
  if (key !== last.current.key) last.current = { key, at, since: performance.now() }
  last.current.at = at
  return { at, since: last.current.since, choose: (next) => setChosen(keys[next] ?? null) }
}

interface ListProps { groups: Group[]; at: number; choose: (at: number) => void }

function List({ groups, at, choose }: ListProps) {
  return (
    <ol className="asklist" aria-label="What waits">
      {groups.map((group, place) => {
        const [first] = group
        if (first === undefined) return null
        const { session, pending } = first
        const dangerous = pending.kind === 'permission' && pending.danger !== null
        return (
          <li key={keyOfGroup(group)}>
            <button type="button" aria-current={place === at ? 'true' : undefined} onClick={() => choose(place)}>
              <AgentMark name={session.agent} />
              <span className="what"><span className="brief">{dangerous && <><Icon name="alert" /><span className="hidden">Danger: </span></>}<Plain text={askedBriefly(pending, session.cwd)} /></span>
                <small><Plain text={titleOf(session)} /> · <Plain text={baseName(session.cwd)} /></small></span>
              <small className="age">{group.length > 1 && <span className="badge">{group.length}</span>} {age(first)}</small>
            </button>
          </li>
        )
      })}
    </ol>
  )
}

/** How long it has waited, as far as that is known. */
function age({ session, pending }: Waiting): string {
  const asked = store.known(session.id)?.askedAt.get(pending.id)
  return asked === undefined ? '' : ago(new Date(asked).toISOString())
}

interface QuestionProps { group: Group; at: number; of: number; since: number; choose: (at: number) => void; split: () => void }

function Question({ group, at, of, since, choose, split }: QuestionProps) {
  const [first, ...others] = group
  if (first === undefined) return null
  const alike = others.map(({ session, pending }) => ({ session: session.id, request: pending.id }))
  return (
    <section className="asked">
      <h2>
        {of > 1 && (
          <span className="places">
            <button type="button" className="ghost" aria-label="Previous question" disabled={at === 0} onClick={() => choose(at - 1)}><Icon name="chevron" className="back" /></button>
            <span className="place">{at + 1} of {of}</span>
            <button type="button" className="ghost" aria-label="Next question" disabled={at === of - 1} onClick={() => choose(at + 1)}><Icon name="chevron" /></button>
          </span>
        )}
        {group.map(({ session }) => <Asker key={session.id} session={session} />)}
      </h2>
      {others.length > 0 && (
        <p className="quiet">{group.length} sessions ask the same; one answer goes to each. <button type="button" className="small" onClick={split}>Answer them one by one</button></p>
      )}
      <PendingView key={keyOfGroup(group)} session={store.open(first.session.id)} pending={first.pending} cwd={first.session.cwd} place={at} since={since} alike={alike} />
    </section>
  )
}

function Asker({ session }: { session: Summary }) {
  return <span className="asker"><AgentMark name={session.agent} /> <a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a> <small><Plain text={session.agent} /> in <Plain text={session.cwd} /></small></span>
}

/** The card takes the focus when the first comes, so that its keys count; not from a field. */
function useFirstCard(main: { current: HTMLElement | null }, any: boolean): void {
  const done = useRef(false)
  useEffect(() => {
    if (!any || done.current) return
    done.current = true
    const active = document.activeElement
    if (active === null || !active.matches('input, textarea, select')) main.current?.querySelector<HTMLElement>('.card[data-request]')?.focus({ preventScroll: true })
  }, [any, main])
}

/** It waits, but what for could not be asked yet. */
function Unclear({ session }: { session: Summary }) {
  const live = store.open(session.id)
  return (
    <section className="asked">
      <h2><a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a></h2>
      {live.error === null
        ? <p className="quiet"><Spinner /> Loading its question…</p>
        : <p className="notice warning"><Icon name="alert" /> <span>It needs you, but could not be loaded: <Plain text={live.error.message} /></span> <button type="button" onClick={() => void live.reload()}>Try again</button></p>}
    </section>
  )
}

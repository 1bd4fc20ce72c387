// Everything that waits for a person, over all sessions. Equal questions are answered together.

import { useEffect, useRef, useState } from 'react'
import { titleOf } from '../../core/session/listing'
import { keyOf, together } from '../../core/permissions/questions'
import type { Summary } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store, type Waiting } from '../../live/store'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { AgentQuestions } from '../permissions/agent_questions'
import { paths } from '../shell/route'
import { PendingView } from '../thread/transcript'

export function Inbox() {
  useSignal(store.list)
  const [apart, setApart] = useState<ReadonlySet<string>>(new Set())
  const main = useRef<HTMLElement>(null)
  const groups = together(store.waiting(), apart)
  const unclear = store.unclear()
  useFirstCard(main, groups.length > 0)
  return (
    <main ref={main} className="screen inbox" aria-label="Inbox" tabIndex={-1}>
      <h1>Inbox</h1>
      {!store.loaded && <p className="quiet">Loading…</p>}
      {store.loaded && groups.length === 0 && unclear.length === 0 && store.outside.length === 0 && (
        <div className="empty big">
          <Icon name="check" />
          <p>Nothing needs your answer. Permission requests and questions from all sessions appear here.</p>
        </div>
      )}
      {[...new Set(store.outside.map(({ agent }) => agent))].map((agent) => (
        <section key={agent} className="asked">
          <h2><span><Plain text={agent} /> <small>outside of any session</small></span></h2>
          <AgentQuestions agent={agent} />
        </section>
      ))}
      {groups.map((group, place) => (
        <Question key={group.slice(0, 1).map(keyOf).join()} group={group} place={place} of={groups.length} split={() => setApart(new Set([...apart, ...group.map(keyOf)]))} />
      ))}
      {unclear.map((session) => <Unclear key={session.id} session={session} />)}
    </main>
  )
}

interface QuestionProps { group: Waiting[]; place: number; of: number; split: () => void }

function Question({ group, place, of, split }: QuestionProps) {
  const [first, ...others] = group
  if (first === undefined) return null
  const alike = others.map(({ session, pending }) => ({ session: session.id, request: pending.id }))
  return (
    <section className="asked">
      <h2>
        {of > 1 && <span className="place">{place + 1} of {of}</span>}
        {group.map(({ session }) => <Asker key={session.id} session={session} />)}
      </h2>
      {others.length > 0 && (
        <p className="quiet">{group.length} sessions ask the same; one answer goes to each. <button type="button" className="small" onClick={split}>Answer them one by one</button></p>
      )}
      <PendingView session={store.open(first.session.id)} pending={first.pending} cwd={first.session.cwd} place={place} alike={alike} />
    </section>
  )
}

function Asker({ session }: { session: Summary }) {
  return <span><a href={paths.session(session.id)}><Plain text={titleOf(session)} /></a> <small><Plain text={session.agent} /> in <Plain text={session.cwd} /></small></span>
}

/** The first card takes the focus when one comes, so that its keys count; not from a field. */
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

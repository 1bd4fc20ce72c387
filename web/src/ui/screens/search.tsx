// What was said in any session, and which are called like that.

import { baseName, sinceWords } from '../../core/text/format'
import { useEffect, useState } from 'react'
import { shownSessions } from '../../core/session/listing'
import { visible } from '../../core/text/safe_text'
import type { SessionState, Subagent } from '../../core/session/state'
import { search, type SearchHit } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { expand } from '../common/collapse'
import { Plain } from '../common/plain_text'
import { go, paths } from '../shell/route'
import { shell } from '../shell/shell'
import { SessionGroup } from '../sidebar/session_group'

export function Search({ query }: { query: string }) {
  const [hits, setHits] = useState<SearchHit[] | null>(null)
  const [text, setText] = useState(query)
  useEffect(() => {
    setText(query)
    if (!query) return
    const abort = new AbortController()
    search(query, abort.signal).then((told) => setHits(told.hits), (error: unknown) => { if (!abort.signal.aborted) shell.fail(error) })
    return () => abort.abort()
  }, [query])
  useSignal(store.list)
  const called = query ? shownSessions(store.summaries.values(), 'all', query).slice(0, MOST_CALLED) : []
  return (
    <main className="screen" aria-label="Search">
      <h1>Search</h1>
      <form role="search" className="searchform" onSubmit={(event) => { event.preventDefault(); go(paths.search(text.trim())) }}>
        <input type="search" aria-label="Search all sessions" value={text} onChange={(e) => setText(e.target.value)} autoFocus />
        <button type="submit" className="primary">Search</button>
      </form>
      {called.length > 0 && <SessionGroup name="Matching titles" sessions={called} />}
      {hits?.length === 0 && <p className="empty">{called.length ? 'No matches in the transcripts.' : 'No matches in the titles, prompts and answers of any session.'}</p>}
      {hits !== null && bySession(hits).map((group) => <HitGroup key={group[0]?.sessionId} hits={group} />)}
    </main>
  )
}

const MOST_CALLED = 5

function bySession(hits: readonly SearchHit[]): SearchHit[][] {
  const groups = new Map<string, SearchHit[]>()
  for (const hit of hits) groups.set(hit.sessionId, [...(groups.get(hit.sessionId) ?? []), hit])
  return [...groups.values()]
}

/** All that was found in a session, under its title. */
function HitGroup({ hits }: { hits: SearchHit[] }) {
  const [first] = hits
  if (first === undefined) return null
  const session = store.summaries.get(first.sessionId)
  return (
    <section className="hitgroup">
      <h2><a href={paths.session(first.sessionId)}><Plain text={first.title ?? first.sessionId} /></a>{session && <small><Plain text={baseName(session.cwd)} /> · {sinceWords(session.updatedAt)}</small>}</h2>
      <ul className="hits">{hits.map((hit, at) => <Hit key={at} hit={hit} />)}</ul>
    </section>
  )
}

function Hit({ hit }: { hit: SearchHit }) {
  const open = async () => {
    go(paths.session(hit.sessionId))
    const session = store.open(hit.sessionId)
    await session.load()
    const subagents = hit.kind === 'subagent' ? speakers(session.state, hit.seq) : []
    expand(subagents.map(({ sessionId }) => `subagent:${sessionId}`))
    // What a subagent said is drawn where the outermost of them was started.
    const seq = subagents.at(-1)?.seq ?? hit.seq
    const at = session.state.entries.findLastIndex((entry) => entry.seq <= seq)
    if (at >= 0) go(paths.entry(hit.sessionId, session.first + at))
  }
  return (
    <li>
      <button type="button" className="hit" onClick={() => void open()}>
        <span className="tag"><Plain text={hit.kind} /></span>
        <span className="snippet">{parts(hit.snippet).map(([text, found], at) => (found ? <mark key={at}>{text}</mark> : <span key={at}>{text}</span>))}</span>
      </button>
    </li>
  )
}

/** The subagent that said it, and those that started that one, the outermost last. */
function speakers({ subagents }: SessionState, seq: number): Subagent[] {
  const found = [...subagents.values()].find(({ thread }) => thread.entries.some((entry) => entry.seq === seq))
  const path: Subagent[] = []
  for (let each = found; each !== undefined && !path.includes(each); each = each.parent === null ? undefined : subagents.get(each.parent)) path.push(each)
  return path
}

function parts(snippet: string): [string, boolean][] {
  return snippet.split('\u0001').flatMap((piece, at): [string, boolean][] => {
    if (at === 0) return [[visible(piece), false]]
    const [found = '', rest = ''] = piece.split('\u0002')
    return [[visible(found), true], [visible(rest), false]]
  })
}

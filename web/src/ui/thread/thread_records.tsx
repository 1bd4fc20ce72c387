// What was decided, as one line where it happened, and what a turn took, as one line at its end.

import { useMemo } from 'react'
import { decisionsAt, filesOf, type Decided, type TurnRecords } from '../../core/session/turn_records'
import { isOver } from '../../core/session/state'
import { reasonOf } from '../../core/permissions/rules'
import { clock, count, duration, money, plural, table } from '../../core/text/format'
import type { LiveSession } from '../../live/session'
import { askRecords, recordsOf, stageOf } from '../../live/turn_history'
import { Icon, type IconName } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { paths } from '../shell/route'

export interface ThreadRecords { records: TurnRecords; decisions: Map<number, Decided[]>; version: number }

const NOTHING: ThreadRecords['decisions'] = new Map()

/** Asked for once the thread is there: nobody waits for it. */
export function useThreadRecords(session: LiveSession): ThreadRecords {
  const { state, loaded, past } = session
  const wanted = loaded && !past
  const version = useRefetch(wanted ? session.id : '', wanted ? stageOf(session) : 0, () => (wanted ? askRecords(session) : Promise.resolve(0))).value ?? 0
  const records = recordsOf(session)
  const decisions = useMemo(
    () => (wanted && records.decided.length > 0 ? decisionsAt(state.entries, records.decided, (id) => (state.places.get(`tool:${id}`) ?? state.places.get(id) ?? -1) - state.entriesBefore) : NOTHING),
    [records, version, wanted, state, state.entries.length],
  )
  return { records, decisions, version }
}

const ICONS = table<IconName>({ allow: 'check', deny: 'cross', cancelled: 'stop' })
const VERBS = table<string>({ allow: 'Allowed', deny: 'Rejected', cancelled: 'Cancelled' })

/** A line about a tool call does not name it again. */
export function DecisionLines({ decided }: { decided: Decided[] }) {
  return (
    <ul className="decidedlines" aria-label="Decisions">
      {decided.map((each) => (
        <li key={each.seq} className={each.decision.effect}>
          <Icon name={ICONS[each.decision.effect] ?? 'info'} />
          <span>{VERBS[each.decision.effect] ?? <Plain text={each.decision.effect} />} {byWhom(each)}{each.toolCallId === null && <>: <code><Plain text={each.what} /></code></>}</span>
          <time>{clock(each.at)}</time>
        </li>
      ))}
    </ul>
  )
}

function byWhom({ decision }: Decided) {
  if (decision.by === 'person' && !decision.rule) return 'by you'
  if (decision.by === 'person') return <>by you, <Plain text={reasonOf(decision)} /></>
  return <>by <Plain text={decision.by === 'rule' ? 'a rule' : decision.by ?? 'a rule'} />: <Plain text={reasonOf(decision)} /></>
}

/** At the last entry of a turn that is over: how long it took, and what it used. */
export function TurnFooter({ session, at, records }: { session: LiveSession; at: number; records: TurnRecords }) {
  const { entries, turns } = session.state
  const id = entries[at]?.turnId
  const ended = id == null ? undefined : records.ended.get(id)
  const turn = turns.find((each) => each.id === id)
  if (id == null || entries[at + 1]?.turnId === id || ended === undefined || (turn !== undefined && !isOver(turn.status))) return null
  let first = at
  while (first > 0 && entries[first - 1]?.turnId === id) first--
  const begun = entries[first]?.at ?? 0
  const files = filesOf(entries.slice(first, at + 1))
  const facts = [
    ended.at > 0 && begun > 0 && ended.at - begun >= 1 && duration(ended.at - begun),
    ended.tokens !== null && ended.tokens > 0 && `${count(ended.tokens)} tokens`,
    ended.cost !== null && money(ended.cost.amount, ended.cost.currency),
  ].filter((fact): fact is string => typeof fact === 'string')
  if (facts.length === 0 && files === 0) return null
  return (
    <p className="turnfoot">
      {facts.map((fact) => <span key={fact}>{fact}</span>)}
      {files > 0 && <a href={paths.review(session.id)}>{plural(files, 'file')} changed</a>}
    </p>
  )
}

// Someone must decide. The card shows what would really run or be written, every answer there is,
// and the rule that one for longer would create. Keys count only while the card has the focus, and only
// after a moment: a card that appears under someone's fingers must not be answered by accident.

import { useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { table } from '../../core/text/format'
import type { PermissionOffer } from '../../core/generated/facts'
import { WORDS } from '../../core/generated/permission_words'
import { answersTo, type Answer } from '../../core/permissions/permission_answers'
import { timesAsked } from '../../core/permissions/questions'
import type { PendingPermission } from '../../core/session/state'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { AllowMore } from './allow_more'
import { AskedBy } from './asked_by'
import { useAnswerDelay } from './answer_delay'
import { useNextCard } from './next_card'
import { PermissionSubject } from './permission_subject'
import { answerNumber } from '../shell/keys'
import { attemptAnswer } from '../shell/shell'

const OPERATIONS = table<string>({
  read: 'Read', write: 'Write', execute: 'Run a command', fetch: 'Fetch from the network', mcp: 'Use an MCP tool', other: 'Something else',
})
const OTHER = 'Something else'
const MORE_KEY = 'm'

/** The same question of another session, which gets the same answer. */
export interface Alike { session: string; request: string }

interface Props { session: LiveSession; pending: PendingPermission; cwd: string; place: number; since?: number | undefined; alike?: Alike[] | undefined }

export function PermissionCard({ session, pending, cwd, place, since, alike = [] }: Props) {
  const [sent, setSent] = useState(false)
  const [more, setMore] = useState(false)
  const ready = useAnswerDelay(session, pending.id, place, alike.length + 1, since)
  const answers = useMemo(() => answersTo(pending.options), [pending.options])
  const card = useRef<HTMLElement>(null)
  const byKey = useRef(false)
  useNextCard(card, session, pending.id, byKey)
  const send = async (optionId: string, others: string, confirmed = false) => {
    if (sent || !ready || session.past) return
    // A button that is disabled would lose the focus, and nobody would know where it was.
    if (card.current?.contains(document.activeElement)) card.current.focus({ preventScroll: true })
    setSent(true)
    const told = [{ session: session.id, request: pending.id, optionId }, ...alike.map((each) => ({ ...each, optionId: others }))]
    const done = await Promise.all(told.map((each) => attemptAnswer(sessions.permit(each.session, each.request, each.optionId, confirmed))))
    if (done[0] === null) setSent(false)
  }
  const choose = (offer: PermissionOffer) => void send(offer.id, forOthers(offer, answers), offer.confirm)
  const close = () => {
    setMore(false)
    card.current?.focus()
  }
  const onKey = (event: KeyboardEvent) => {
    byKey.current = true
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return
    const answer = answers.find(({ number }) => number === answerNumber(event.key))
    const opens = event.key === MORE_KEY && pending.offers.length > 0 && !session.past
    if (answer === undefined && !opens) return
    event.preventDefault()
    event.stopPropagation()
    if (answer === undefined) setMore(true)
    else void send(answer.id, answer.id)
  }
  const what = OPERATIONS[pending.operation] ?? OTHER
  const closed = sent || session.past
  const all = alike.length > 0 ? ` all ${alike.length + 1}` : ''
  return (
    <section ref={card} className={`card permission ${pending.danger === null ? '' : 'dangerous'}`} tabIndex={0} aria-label={`Permission: ${what}`} data-request={pending.id} data-ready={ready ? '' : undefined} onKeyDown={onKey} onPointerDown={() => { byKey.current = false }}>
      <header>
        <Icon name="shield" /> <strong>{what === OTHER ? <Plain text={pending.title || 'Permission'} /> : <>Permission: {what.toLowerCase()}</>}</strong>
        <AskedBy name={pending.askedBy} />
        <span className="quiet">{pending.toolCallId === null && !pending.claimed ? 'Dragoman does it if you allow it' : 'as reported by the agent'}</span>
      </header>
      {pending.danger !== null && <p className="dangermark"><Icon name="alert" /> <span><strong>Danger:</strong> <Plain text={pending.danger} /></span></p>}
      <PermissionSubject session={session} pending={pending} cwd={cwd} />
      <Repeated times={timesAsked(session.state.pending, pending.id)} />
      {more
        ? <AllowMore pending={pending} all={all} disabled={closed} choose={choose} close={close} />
        : (
          <Answers pending={pending} answers={answers} all={all} closed={closed} answer={(id) => void send(id, id)}>
            {pending.offers.length > 0 && (
              <li><button type="button" className="more" disabled={closed} aria-expanded={false} onClick={() => setMore(true)}><kbd>{MORE_KEY}</kbd> Allow more…</button></li>
            )}
          </Answers>
        )}
    </section>
  )
}

/** A rule for the project is made once: the other sessions get a one-time yes with it. */
function forOthers({ id, scope }: PermissionOffer, answers: Answer[]): string {
  const once = scope === 'session' ? undefined : answers.find(({ kind, warns }) => kind === 'allow_once' && !warns)
  return once?.id ?? id
}

function Repeated({ times }: { times: number }) {
  return times < 2 ? null : <p className="repeated"><Icon name="info" /> Asked {times} times; one answer counts for all.</p>
}

interface AnswersProps { pending: PendingPermission; answers: Answer[]; all: string; closed: boolean; answer: (id: string) => void; children: React.ReactNode }

function Answers({ pending, answers, all, closed, answer, children }: AnswersProps) {
  const drawn = answers.filter(({ spare }) => !spare)
  return (
    <div className="answerbar">
      <ol className="answers">
        {drawn.map((option) => {
          const about = `${pending.id}-${option.number}`
          const told = option.consequence === null ? about : `${about} ${about}-rule`
          return (
            <li key={option.number} className={option.warns ? 'warned' : ''}>
              <button type="button" className={toneOf(option, drawn)} disabled={closed} aria-describedby={told} onClick={() => answer(option.id)}>
                <kbd>{option.number}</kbd> {forAll(option.words, all)}
              </button>
              <Remarks option={option} id={about} />
            </li>
          )
        })}
        {children}
      </ol>
      <Consequences pending={pending} answers={answers.filter(({ consequence }) => consequence !== null)} />
    </div>
  )
}

/** "Allow once" for three is "Allow all 3". */
function forAll(words: string, all: string): string {
  return all === '' ? words : `${words.replace(/ once$/, '')}${all}`
}

function toneOf(option: Answer, drawn: Answer[]): string {
  if (option.words.endsWith('answer')) return 'unclear'
  if (/reject/i.test(option.words)) return 'reject'
  return option === drawn[0] && option.kind === 'allow_once' ? 'allow first' : 'allow'
}

/** Next to the button and not part of it: what the agent calls the answer. */
function Remarks({ option, id }: { option: Answer; id: string }) {
  return (
    <div className="remarks" id={id}>
      {option.remark && <p className={option.warns ? 'warns' : 'quiet'}>{option.warns && <Icon name="alert" />} <Plain text={option.remark} /></p>}
    </div>
  )
}

/** Folded where a long question needs the room of a small window. */
function Consequences({ pending, answers }: { pending: PendingPermission; answers: Answer[] }) {
  const [folds] = useState(() => isLong(pending) && window.matchMedia('(max-width: 767px)').matches)
  if (answers.length === 0) return null
  const lines = answers.map((option) => <Consequence key={option.number} option={option} id={`${pending.id}-${option.number}-rule`} />)
  return folds ? <details className="rules"><summary>What “always” means here</summary>{lines}</details> : <div className="rules">{lines}</div>
}

const SHORT = 160

function isLong({ argv, content }: PendingPermission): boolean {
  return content.length > 0 || (argv !== null && argv.join(' ').length > SHORT)
}

/** What an answer for always leads to. One that counts once has no button where another does the same. */
function Consequence({ option, id }: { option: Answer; id: string }) {
  const name = WORDS.get(option.kind) ?? option.words
  return <p className="rule" id={id}><kbd>{option.number}</kbd> <strong>{option.spare ? name : option.words}</strong>: <Plain text={option.consequence ?? ''} lines /></p>
}

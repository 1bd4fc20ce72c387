// A plan as a list of steps with how far each is.

import { useState, type ReactNode } from 'react'
import { stepUnderWay, type PlanEntry, type UnderWay } from '../../core/session/state'
import type { LiveSession } from '../../live/session'
import { useSignal } from '../../live/signal'
import { Icon, Ring, Spinner } from '../common/icons'
import { Markdown } from './markdown'
import { Plain } from '../common/plain_text'

const SHOWN_STEPS = 200

export function PlanView({ session, plan }: { session: LiveSession; plan: PlanEntry }) {
  useSignal(session.facts) // the end of a turn changes no entry
  const [shown, setShown] = useState(SHOWN_STEPS)
  const now = stepUnderWay(session.state, plan)
  const rest = plan.steps.length - shown
  const done = plan.steps.filter((step) => step.status === 'completed').length
  return (
    <div className="plan">
      {plan.steps.length > 0 && (
        <>
          <div className="planhead">
            <strong>Plan</strong> <span className="quiet">{done} of {plan.steps.length} done</span>
            <progress max={plan.steps.length} value={done} aria-label="Steps done" />
          </div>
          <ol>
            {plan.steps.slice(0, shown).map((step, at) => (
              <li key={at} className={`${step.status ?? 'pending'} ${step.status === 'in_progress' ? now : ''}`}>
                <StepMark mark={step.status === 'in_progress' ? now : step.status === 'completed' ? 'done' : 'to do'} />
                <span><Words text={step.content} /></span>
                {step.priority && step.priority !== 'medium' && <span className={`tag ${step.priority === 'high' ? 'high' : ''}`}><Plain text={step.priority} /></span>}
              </li>
            ))}
          </ol>
          {rest > 0 && <button type="button" className="more" onClick={() => setShown(shown + SHOWN_STEPS)}>Show {Math.min(rest, SHOWN_STEPS)} more steps</button>}
        </>
      )}
      {plan.markdown !== null && <Markdown text={plan.markdown} />}
      {plan.uri !== null && <p><Icon name="file" /> <code><Plain text={plan.uri} /></code></p>}
    </div>
  )
}

/** Steps are plain text, except for the names of files and commands in backquotes. */
function Words({ text }: { text: string }) {
  return <>{text.split('`').map((part, at) => (at % 2 ? <code key={at}><Plain text={part} /></code> : <Plain key={at} text={part} />))}</>
}

type Mark = UnderWay | 'done' | 'to do'

const DRAWN: Record<Mark, ReactNode> = {
  done: <Icon name="check" />, now: <Spinner />, unfinished: <Ring begun />, failed: <Icon name="cross" />, 'to do': <Ring />,
}
const WORDS: Partial<Record<Mark, string>> = { unfinished: 'not finished', failed: 'not finished, the turn failed' }

function StepMark({ mark }: { mark: Mark }) {
  const word = WORDS[mark] ?? mark
  return <span className="mark" title={word}>{DRAWN[mark]}<span className="hidden">{word}</span></span>
}

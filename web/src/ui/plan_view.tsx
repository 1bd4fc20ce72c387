// A plan as a list of steps with how far each is.

import type { PlanEntry } from '../core/state'
import { Icon, Spinner } from './icons'
import { Markdown } from './markdown'
import { Plain } from './plain'

export function PlanView({ plan }: { plan: PlanEntry }) {
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
            {plan.steps.map((step, at) => (
              <li key={at} className={step.status ?? 'pending'}>
                <StepMark status={step.status ?? 'pending'} />
                <span><Words text={step.content} /></span>
                {step.priority && step.priority !== 'medium' && <span className={`tag ${step.priority === 'high' ? 'high' : ''}`}><Plain text={step.priority} /></span>}
              </li>
            ))}
          </ol>
        </>
      )}
      {plan.markdown !== null && <Markdown text={plan.markdown} />}
      {plan.uri !== null && <p><Icon name="file" /> <code><Plain text={plan.uri} /></code></p>}
    </div>
  )
}

/** Steps are plain text but for the names of files and commands in them. */
function Words({ text }: { text: string }) {
  return <>{text.split('`').map((part, at) => (at % 2 ? <code key={at}><Plain text={part} /></code> : <Plain key={at} text={part} />))}</>
}

function StepMark({ status }: { status: string }) {
  const word = status === 'completed' ? 'done' : status === 'in_progress' ? 'now' : 'to do'
  return (
    <span className="mark" title={word}>
      {status === 'completed' ? <Icon name="check" /> : status === 'in_progress' ? <Spinner /> : <span className="dot" />}
      <span className="hidden">{word}</span>
    </span>
  )
}

// The agent asks the user for something: a form to fill in, or an address to visit.

import { useId, useMemo, useRef, useState, type FormEvent } from 'react'
import type { Json } from '../../core/generated/content'
import { answerOf, areDescribed, fieldsOf, problemsOf, type Choice, type Field, type Values } from '../../core/form'
import type { PendingElicitation } from '../../core/session/state'
import { reveal } from '../../core/text/safe_text'
import { ApiError, sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useAnswerDelay } from './answer_delay'
import { AskedBy } from './asked_by'
import { attemptAnswer } from '../shell/shell'

interface Props { session: LiveSession; pending: PendingElicitation; place: number; since?: number | undefined }

export function ElicitationForm({ session, pending, place, since }: Props) {
  const ready = useAnswerDelay(session, pending.id, place, 1, since)
  const send = (action: string, content?: Json) => sessions.elicit(session.id, pending.id, action, content)
  return <QuestionForm pending={pending} filled={session.filled} past={session.past} ready={ready} send={send} />
}

interface QuestionProps {
  pending: Pick<PendingElicitation, 'id' | 'message' | 'mode' | 'schema' | 'url'> & Partial<Pick<PendingElicitation, 'askedBy' | 'limit'>>
  /** What was typed into each question, kept while the page is open. */
  filled: Map<string, Values>
  past: boolean
  ready: boolean
  send: (action: string, content?: Json) => Promise<unknown>
}

export function QuestionForm({ pending, filled, past, ready, send }: QuestionProps) {
  const fields = useMemo(() => fieldsOf(pending.schema), [pending.schema])
  const [values, setValues] = useState<Values>(filled.get(pending.id) ?? new Map())
  const [sent, setSent] = useState(false)
  const closed = sent || past
  const ours = pending.limit != null
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map())
  const form = useRef<HTMLFormElement>(null)
  const fill = (name: string, value: Field['initial']) => {
    const next = new Map(values).set(name, value)
    filled.set(pending.id, next)
    setValues(next)
    setProblems(new Map([...problems].filter(([wrong]) => wrong !== name)))
  }
  const reject = (found: ReadonlyMap<string, string>) => {
    setProblems(found)
    const first = fields.findIndex(({ name }) => found.has(name))
    form.current?.querySelectorAll<HTMLElement>('.field')[first]?.querySelector<HTMLElement>('input, select, textarea')?.focus()
  }
  const reply = async (action: string, content?: Json) => {
    if (!ready) return
    setSent(true)
    const refused = (error: unknown) => {
      const wrong = wrongFields(error)
      if (wrong === null) throw error
      reject(wrong)
      return null
    }
    if ((await attemptAnswer(send(action, content).catch(refused))) === null) setSent(false)
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (pending.mode === 'url') return void reply('accept')
    const found = problemsOf(fields, values)
    if (found.size) reject(found)
    else void reply('accept', answerOf(fields, values))
  }
  return (
    <section className="card elicitation" tabIndex={0} aria-label={ours ? 'Question about a limit' : 'Question from the agent'} data-request={pending.id} data-ready={ready ? '' : undefined}>
      <header><Icon name="info" /> <strong>{ours ? 'A limit is reached' : 'The agent asks'}</strong> <AskedBy name={pending.askedBy ?? null} /></header>
      <p className="title"><Plain text={pending.message} lines /></p>
      <form ref={form} noValidate onSubmit={submit}>
        {pending.url !== null && <Address url={pending.url} />}
        {fields.map((field) => (
          <FormField key={field.name} field={field} value={values.get(field.name) ?? field.initial} problem={problems.get(field.name) ?? null} onChange={(value) => fill(field.name, value)} />
        ))}
        <div className="options">
          <button type="submit" className="allow" disabled={closed}>{ours ? 'Allow more' : pending.mode === 'url' ? 'Done' : 'Send'}</button>
          <button type="button" className="reject" disabled={closed} onClick={() => void reply('decline')}>{ours ? 'Stop the turn' : 'Decline'}</button>
          {!ours && <button type="button" disabled={closed} onClick={() => void reply('cancel')}>Cancel</button>}
        </div>
      </form>
    </section>
  )
}

/** What the server says is wrong with each field, if that is why it refused. */
function wrongFields(error: unknown): Map<string, string> | null {
  if (!(error instanceof ApiError) || error.code !== 'invalid') return null
  const fields = (error.detail as { fields?: Record<string, string> } | null)?.fields
  return fields === undefined ? null : new Map(Object.entries(fields).map(([name, words]) => [name, `${words.charAt(0).toUpperCase()}${words.slice(1)}.`]))
}

function Address({ url }: { url: string }) {
  const web = /^https?:/i.test(url)
  return (
    <p className="address">
      <Icon name="globe" /> {web ? <a href={url} target="_blank" rel="noopener noreferrer"><Plain text={url} /></a> : <code><Plain text={url} /></code>}
    </p>
  )
}

interface FieldProps { field: Field; value: string | boolean | string[]; problem: string | null; onChange: (value: string | boolean | string[]) => void }

function FormField({ field, value, problem, onChange }: FieldProps) {
  const group = useId()
  const wrong = problem !== null && <small className="wrong" id={`${group}-wrong`} role="alert"><Icon name="alert" /> <Plain text={problem} /></small>
  const said = problem === null ? {} : { 'aria-invalid': true, 'aria-describedby': `${group}-wrong` }
  const label = <span className="label"><Plain text={field.label} />{field.required && <span className="quiet"> (required)</span>}</span>
  const note = field.description && <small><Plain text={field.description} lines /></small>
  if (field.kind === 'many') {
    const chosen = value as string[]
    const toggle = (one: string) => onChange(chosen.includes(one) ? chosen.filter((c) => c !== one) : [...chosen, one])
    return (
      <fieldset className="field">
        <legend>{label}</legend>{note}
        {field.choices.map((choice) => (
          <label key={choice.value} className="check">
            <input type="checkbox" checked={chosen.includes(choice.value)} onChange={() => toggle(choice.value)} /> <ChoiceWords choice={choice} />
          </label>
        ))}
        {wrong}
      </fieldset>
    )
  }
  if (field.kind === 'yes') {
    return <label className="field check"><input type="checkbox" checked={value === true} onChange={(e) => onChange(e.target.checked)} /> {label} {note}</label>
  }
  if (field.kind === 'one' && areDescribed(field.choices)) {
    return (
      <fieldset className="field">
        <legend>{label}</legend>{note}
        {!field.required && <Radio group={group} field={field} choice={{ value: '', label: 'No answer' }} value={value as string} onChange={onChange} />}
        {field.choices.map((choice) => <Radio key={choice.value} group={group} field={field} choice={choice} value={value as string} onChange={onChange} />)}
        {wrong}
      </fieldset>
    )
  }
  return <label className="field">{label}{note}<Input field={field} value={value as string} said={said} onChange={onChange} />{wrong}</label>
}

interface RadioProps { group: string; field: Field; choice: Choice; value: string; onChange: (value: string) => void }

function Radio({ group, field, choice, value, onChange }: RadioProps) {
  return (
    <label className="check">
      <input type="radio" name={group} required={field.required} checked={value === choice.value} onChange={() => onChange(choice.value)} /> <ChoiceWords choice={choice} />
    </label>
  )
}

function ChoiceWords({ choice }: { choice: Choice }) {
  return <span><Plain text={choice.label} />{choice.description && <small className="meaning"><Plain text={choice.description} lines /></small>}</span>
}

interface InputProps { field: Field; value: string; said: object; onChange: (value: string) => void }

function Input({ field, value, said, onChange }: InputProps) {
  if (field.kind === 'one') {
    return (
      <select {...said} required={field.required} value={value} onChange={(e) => onChange(e.target.value)}>
        <option value="">Choose…</option>
        {field.choices.map((choice) => <option key={choice.value} value={choice.value}>{reveal(choice.label)}</option>)}
      </select>
    )
  }
  if (field.kind === 'long') return <textarea {...said} rows={4} required={field.required} value={value} onChange={(e) => onChange(e.target.value)} />
  return (
    <input
      {...said} type={field.input} required={field.required} value={value} step={field.kind === 'integer' ? 1 : 'any'}
      min={field.min} max={field.max} onChange={(e) => onChange(e.target.value)}
    />
  )
}

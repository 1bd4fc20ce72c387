// Dragoman's own offers: how much to allow, and for how long. What is dangerous is asked twice.

import { useEffect, useId, useRef, useState, type FormEvent, type KeyboardEvent } from 'react'
import type { PermissionOffer } from '../../core/generated/facts'
import { offerFor, scopeWords, scopesOf, subjectsOf } from '../../core/permissions/permission_answers'
import type { PendingPermission } from '../../core/session/state'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

interface Props {
  pending: PendingPermission
  /** What the buttons add for several sessions. */
  all: string
  disabled: boolean
  choose: (offer: PermissionOffer) => void
  close: () => void
}

export function AllowMore({ pending: { offers }, all, disabled, choose, close }: Props) {
  const [first] = offers
  const [breadth, setBreadth] = useState(first?.breadth ?? '')
  const [scope, setScope] = useState(first?.scope ?? '')
  const [asking, setAsking] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.querySelector<HTMLElement>('input:checked, button')?.focus(), [asking])
  const offer = offerFor(offers, breadth, scope)
  if (offer === undefined) return null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (offer.confirm && !asking) setAsking(true)
    else choose(offer)
  }
  const leave = () => (asking ? setAsking(false) : close())
  const onKey = (event: KeyboardEvent) => {
    // The card's numbers are not in sight, and Escape must not count as the first of two that stop the turn.
    if (event.key === 'Escape') {
      event.preventDefault()
      leave()
    }
    event.stopPropagation()
  }
  return (
    <form ref={form} className="allowmore" aria-label="Allow more" onSubmit={submit} onKeyDown={onKey}>
      {asking ? (
        <>
          <p className="twice" role="alert"><Icon name="alert" /> <span>Really allow <Plain text={wordsOf(offer)} />, without being asked again?</span></p>
          <div className="options">
            <button type="button" onClick={leave}>No</button>
            <button type="submit" className="danger" disabled={disabled}>Yes, allow it{all}</button>
          </div>
        </>
      ) : (
        <>
          <div className="choices">
            <Choice legend="What to allow" name="breadth" value={offer.breadth} choose={setBreadth} choices={subjectsOf(offers).map((each) => ({ value: each.breadth, words: each.subject }))} />
            <Choice legend="For how long" name="scope" value={offer.scope} choose={setScope} choices={scopesOf(offers, offer.breadth).map((each) => ({ value: each.scope, words: scopeWords(each) }))} />
          </div>
          <p className="rule" aria-live="polite">From now on: <Plain text={offer.consequence || offer.words} /></p>
          <div className="options">
            <button type="submit" className="primary" disabled={disabled}>Allow{all}</button>
            <button type="button" onClick={leave}>Back</button>
          </div>
        </>
      )}
    </form>
  )
}

/** Without its verb, which the question has. */
function wordsOf({ words }: PermissionOffer): string {
  return words.replace(/^Allow /, '')
}

interface ChoiceProps { legend: string; name: string; value: string; choices: { value: string; words: string }[]; choose: (value: string) => void }

function Choice({ legend, name, value, choices, choose }: ChoiceProps) {
  const group = useId()
  return (
    <fieldset className="choice">
      <legend>{legend}</legend>
      {choices.map((each) => (
        <label key={each.value}>
          <input type="radio" name={`${group}${name}`} value={each.value} checked={each.value === value} onChange={() => choose(each.value)} /> <Plain text={each.words} />
        </label>
      ))}
    </fieldset>
  )
}

// Mode, model and the agent's other options. The browser's own selects: known to every thumb.

import type { ConfigChoice, ConfigOption } from '../../core/generated/facts'
import { reveal } from '../../core/text/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { attempt } from '../shell/shell'

export function OptionPickers({ session, main }: { session: LiveSession; main: boolean }) {
  const { modes, configOptions: options } = session.state
  const mode = modeOption(options)
  const rest = options.filter((option) => option !== mode)
  const id = main ? 'mode' : undefined
  return (
    <>
      {mode !== null && <Picker session={session} option={mode} id={id} label="Mode" />}
      {mode === null && modes !== null && modes.available.length > 0 && (
        <select
          id={id}
          aria-label="Mode"
          title="Mode"
          value={modes.current}
          onChange={(event) => void attempt(sessions.mode(session.id, event.target.value))}
        >
          {modes.available.map((mode) => <option key={mode.id} value={mode.id} title={mode.description ?? ''}>{reveal(mode.name)}</option>)}
        </select>
      )}
      {rest.map((option) => <Picker key={option.id} session={session} option={option} />)}
    </>
  )
}

/** Some agents offer their modes as one of their options. */
function modeOption(options: ConfigOption[]): ConfigOption | null {
  return options.find((option) => option.category === 'mode' && option.choices != null) ?? null
}

interface PickerProps { session: LiveSession; option: ConfigOption; id?: string | undefined; label?: string }

function Picker({ session, option, id, label }: PickerProps) {
  const set = (value: string | boolean) => void attempt(sessions.config(session.id, option.id, value))
  const title = reveal([option.name, option.description].filter(Boolean).join(': '))
  if (option.kind != null) return <span className="quiet" title={title}>{reveal(`${option.name}: ${option.value}`)}</span>
  if (option.choices == null) {
    return (
      <label className="check" title={title}>
        <input type="checkbox" checked={option.value === true} onChange={(event) => set(event.target.checked)} /> {reveal(option.name)}
      </label>
    )
  }
  return (
    <select
      id={id}
      aria-label={label ?? reveal(option.name)}
      title={title}
      value={String(option.value)}
      onChange={(event) => set(event.target.value)}
    >
      {grouped(option.choices).map(([group, choices]) => (
        group === '' ? choices.map(choiceOption) : <optgroup key={group} label={reveal(group)}>{choices.map(choiceOption)}</optgroup>
      ))}
    </select>
  )
}

function choiceOption(choice: ConfigChoice) {
  return <option key={choice.value} value={choice.value} title={choice.description ?? ''}>{reveal(choice.name)}</option>
}

function grouped(choices: ConfigChoice[]): [string, ConfigChoice[]][] {
  const groups = new Map<string, ConfigChoice[]>()
  for (const choice of choices) groups.set(choice.group ?? '', [...(groups.get(choice.group ?? '') ?? []), choice])
  return [...groups]
}

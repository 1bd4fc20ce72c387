// Mode, model and the agent's other options, each with its label, and what its choices mean.

import type { PickerOption } from '../../core/picking'
import { modeOption } from '../../core/session/agent_options'
import type { ConfigOption } from '../../core/generated/facts'
import { reveal } from '../../core/text/safe_text'
import { sessions } from '../../live/api'
import type { LiveSession } from '../../live/session'
import { Picker } from '../common/picker'
import { attempt } from '../shell/shell'

export function OptionPickers({ session, main }: { session: LiveSession; main: boolean }) {
  const { modes, configOptions: options } = session.state
  const mode = modeOption(options)
  const rest = options.filter((option) => option !== mode)
  const id = main ? 'mode' : undefined
  return (
    <>
      {mode !== null && <OptionPicker session={session} option={mode} id={id} label="Mode" />}
      {mode === null && modes !== null && modes.available.length > 0 && (
        <Picker
          id={id} label="Mode" value={modes.current ?? ''} onChange={(value) => void attempt(sessions.mode(session.id, value))}
          options={modes.available.map(({ id: value, name, description }) => ({ value, name, note: description ?? '' }))}
        />
      )}
      {rest.map((option) => <OptionPicker key={option.id} session={session} option={option} />)}
    </>
  )
}

interface OptionProps { session: LiveSession; option: ConfigOption; id?: string | undefined; label?: string }

function OptionPicker({ session, option, id, label }: OptionProps) {
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
  return <Picker id={id} label={label ?? option.name} value={String(option.value)} options={choicesOf(option)} onChange={set} />
}

export function choicesOf({ choices }: ConfigOption): PickerOption[] {
  return (choices ?? []).map(({ value, name, description, group }) => ({ value, name, note: description ?? '', group: group ?? undefined }))
}

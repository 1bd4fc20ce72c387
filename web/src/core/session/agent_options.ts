// What can be chosen for a session of an agent, from what it offered in another. Pure.

import type { ConfigOption, Mode } from '../generated/facts'

/** Some agents offer their modes as one of their options. */
export function modeOption(options: readonly ConfigOption[]): ConfigOption | null {
  return options.find((option) => option.category === 'mode' && option.choices != null) ?? null
}

/** One thing to choose; without an option's id it is the mode. */
export interface Offer { id: string | null; label: string; choices: { value: string; name: string; note: string; group?: string | undefined }[] }

interface Told { modes?: { available: Mode[] } | null | undefined; configOptions?: ConfigOption[] | undefined }

/** The mode first; of what takes no choices nothing can be chosen beforehand. */
export function offersOf({ modes, configOptions: options = [] }: Told): Offer[] {
  const mode = modeOption(options)
  const own = modes?.available ?? []
  const first: Offer[] = mode === null && own.length > 0
    ? [{ id: null, label: 'Mode', choices: own.map(({ id, name, description }) => ({ value: id, name, note: description ?? '' })) }]
    : []
  const rest = options.filter((option) => option.choices != null && option.kind == null)
  const ordered = mode === null ? rest : [mode, ...rest.filter((option) => option !== mode)]
  return [...first, ...ordered.map((option) => ({
    id: option.id,
    label: option === mode ? 'Mode' : option.name,
    choices: (option.choices ?? []).map(({ value, name, description, group }) => ({ value, name, note: description ?? '', group: group ?? undefined })),
  }))]
}

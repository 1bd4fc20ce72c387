// What a list to choose from shows for what was typed. Pure.

export interface PickerOption { value: string; name: string; note?: string | undefined; group?: string | undefined; disabled?: boolean }

/** Those with all the words in their name or value first, then those with them in their description. */
export function optionsFor(options: readonly PickerOption[], query: string): PickerOption[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return [...options]
  const has = (text: string) => words.every((word) => text.toLowerCase().includes(word))
  const named = options.filter(({ name, value }) => has(`${name} ${value}`))
  return [...named, ...options.filter((option) => !named.includes(option) && has(`${option.name} ${option.value} ${option.note ?? ''} ${option.group ?? ''}`))]
}

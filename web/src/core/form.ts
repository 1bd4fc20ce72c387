// An elicitation's schema as the fields of a form, and what was typed as its answer. The schemas are
// flat objects of simple values; whatever else comes is asked for as text.

import type { Json } from './generated/content'
import { table } from './text/format'

export interface Choice { value: string; label: string; description?: string }

export interface Field {
  name: string
  label: string
  description: string
  kind: 'text' | 'long' | 'number' | 'integer' | 'yes' | 'one' | 'many'
  input: 'text' | 'email' | 'url' | 'date' | 'datetime-local' | 'number'
  required: boolean
  choices: Choice[]
  initial: string | boolean | string[]
  min?: number
  max?: number
  /** Of a text in characters, of a list in items. */
  least?: number
  most?: number
}

/** By the names of the fields, which may be those that every object has. */
export type Values = ReadonlyMap<string, Field['initial']>

export function fieldsOf(schema: Json | null): Field[] {
  const properties = (schema?.properties ?? {}) as Record<string, Json>
  const required = Array.isArray(schema?.required) ? (schema.required as unknown[]) : []
  return Object.entries(properties).map(([name, property]) => fieldOf(name, property, required.includes(name)))
}

const INPUTS = table<Field['input']>({ email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' })

function fieldOf(name: string, property: Json, required: boolean): Field {
  const kind = kindOf(property)
  const field: Field = {
    name,
    label: text(property.title) || name,
    description: text(property.description),
    kind,
    input: kind === 'number' || kind === 'integer' ? 'number' : INPUTS[text(property.format)] ?? 'text',
    required,
    choices: choicesOf(kind === 'many' ? ((property.items ?? {}) as Json) : property),
    initial: initialOf(kind, property.default),
  }
  if (typeof property.minimum === 'number') field.min = property.minimum
  if (typeof property.maximum === 'number') field.max = property.maximum
  const [least, most] = kind === 'many' ? [property.minItems, property.maxItems] : [property.minLength, property.maxLength]
  if (typeof least === 'number') field.least = least
  if (typeof most === 'number') field.most = most
  return field
}

function kindOf(property: Json): Field['kind'] {
  if (property.type === 'boolean') return 'yes'
  if (property.type === 'array') return 'many'
  if (choicesOf(property).length) return 'one'
  if (property.type === 'number' || property.type === 'integer') return property.type
  return typeof property.maxLength === 'number' && property.maxLength > 200 ? 'long' : 'text'
}

function choicesOf(property: Json): Choice[] {
  const titled = [property.oneOf, property.anyOf].find(Array.isArray) as Json[] | undefined
  if (titled) return titled.filter((one) => 'const' in one).map(choiceOf)
  const names = Array.isArray(property.enumNames) ? (property.enumNames as unknown[]) : []
  const values = Array.isArray(property.enum) ? (property.enum as unknown[]) : []
  return values.map((value, at) => ({ value: String(value), label: text(names[at]) || String(value) }))
}

function choiceOf(one: Json): Choice {
  const choice: Choice = { value: String(one.const), label: text(one.title) || String(one.const) }
  if (text(one.description)) choice.description = text(one.description)
  return choice
}

/** A list to unfold has no room for more than names. */
export function areDescribed(choices: readonly Choice[]): boolean {
  return choices.some((choice) => choice.description !== undefined)
}

function initialOf(kind: Field['kind'], value: unknown): Field['initial'] {
  if (kind === 'yes') return value === true
  if (kind === 'many') return Array.isArray(value) ? value.map(String) : []
  return value == null ? '' : String(value)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** What to send; a field that was left empty is left out. */
export function answerOf(fields: Field[], values: Values): Json {
  const answer = Object.create(null) as Json
  for (const field of fields) {
    const value = values.get(field.name) ?? field.initial
    if (value === '' || (Array.isArray(value) && value.length === 0 && !field.required)) continue
    answer[field.name] = field.input === 'number' ? Number(value) : value
  }
  return answer
}

/** What is wrong with what was filled in, by field. A pattern is the agent's program: the server judges it. */
export function problemsOf(fields: Field[], values: Values): Map<string, string> {
  const found = new Map<string, string>()
  for (const field of fields) {
    const problem = problemOf(field, values.get(field.name) ?? field.initial)
    if (problem !== null) found.set(field.name, problem)
  }
  return found
}

function problemOf(field: Field, value: Field['initial']): string | null {
  if (typeof value === 'boolean') return null
  if (value.length === 0) return field.required ? NEEDED[field.kind] ?? 'Required.' : null
  if (Array.isArray(value)) return outside(value.length, field.least, field.most, 'choice')
  if (field.input === 'number') return numberProblem(field, value)
  if (field.kind === 'one') return null
  if (field.input === 'email' && !/^[^\s@]+@[^\s@]+$/.test(value)) return 'Expected an email address.'
  if (field.input === 'url' && !URL.canParse(value)) return 'Expected a URL such as https://example.org.'
  return outside([...value].length, field.least, field.most, 'character')
}

const NEEDED: Partial<Record<Field['kind'], string>> = { many: 'Choose at least one.', one: 'Choose one.' }

function numberProblem(field: Field, value: string): string | null {
  const number = Number(value)
  if (!Number.isFinite(number)) return 'Expected a number.'
  if (field.kind === 'integer' && !Number.isInteger(number)) return 'Expected a whole number.'
  return outside(number, field.min, field.max, '')
}

function outside(size: number, low: number | undefined, high: number | undefined, unit: string): string | null {
  if ((low === undefined || size >= low) && (high === undefined || size <= high)) return null
  const words = low === undefined ? `at most ${high}` : high === undefined ? `at least ${low}` : low === high ? `${low}` : `${low} to ${high}`
  return `Expected ${words}${unit && ` ${unit}${(high ?? low) === 1 ? '' : 's'}`}.`
}

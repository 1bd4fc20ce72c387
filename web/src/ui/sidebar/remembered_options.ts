// The modes and models that agents offered before, kept in this browser: a person can choose before the
// agent runs.

import type { SessionState } from '../../core/session/state'

export interface Choice { value: string; name: string }
export interface AgentOptions { modes: Choice[]; models: Choice[]; modelOption: string }

const KEY = 'dragoman.offers'

function all(): Record<string, AgentOptions> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}') as Record<string, AgentOptions>
  } catch {
    return {}
  }
}

export function rememberedOptions(agent: string): AgentOptions | null {
  return all()[agent] ?? null
}

export function rememberOptions(state: SessionState): void {
  const offer = offered(state)
  if (!state.agent || (offer.modes.length === 0 && offer.models.length === 0)) return
  const known = all()
  if (JSON.stringify(known[state.agent]) === JSON.stringify(offer)) return
  localStorage.setItem(KEY, JSON.stringify({ ...known, [state.agent]: offer }))
}

function offered({ modes, configOptions: options }: SessionState): AgentOptions {
  const choices = (category: string) => options.find((option) => option.category === category || option.id === category)
  const named = (category: string) => (choices(category)?.choices ?? []).map(({ value, name }) => ({ value, name }))
  const own = (modes?.available ?? []).map((mode) => ({ value: mode.id, name: mode.name }))
  return { modes: own.length ? own : named('mode'), models: named('model'), modelOption: choices('model')?.id ?? 'model' }
}

// How a session is fenced, in words. Pure.

import { plural } from './text/format'

/** For the header: short. */
export function fenceLabel(fence: string | null, network: readonly string[] | null): string {
  if (fence === null) return 'not fenced'
  const reach = network === null ? 'all' : network.length === 0 ? 'none' : plural(network.length, 'host')
  return `fenced · network: ${reach}`
}

/** Everything that is known. */
export function fenceWords(fence: string | null, network: readonly string[] | null): string {
  if (fence === null) return 'none: the agent can do what you can'
  return `${fence}; network: ${network === null ? 'all' : network.join(', ') || 'none'}`
}

// Something that changes: subscribers are notified, and compare the version.

import { useSyncExternalStore } from 'react'

export class Signal {
  version = 0
  private readonly listeners = new Set<() => void>()

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  emit(): void {
    this.version++
    for (const listener of [...this.listeners]) listener()
  }
}

/** Draw again whenever the signal is given. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, () => signal.version)
}

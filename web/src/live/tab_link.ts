// How this tab hears what happens: through the shared worker; where there is none, through the tab
// that holds a lock and notifies the others; where there are no locks either, by its own connection.

import { StreamReader, type Sink } from './stream_reader'
import { scriptUrl } from './trusted_html'
import type { FromTab, ToTab } from './worker'
import workerUrl from './worker.ts?sharedworker&url'

export function listen(token: string, sink: Sink): void {
  if (typeof SharedWorker !== 'undefined') throughWorker(token, sink)
  else if ('locks' in navigator && typeof BroadcastChannel !== 'undefined') throughLeader(token, sink)
  else new StreamReader(token, sink)
}

function throughWorker(token: string, sink: Sink): void {
  // The types know nothing of trusted types; the browser insists on one.
  const url = scriptUrl(workerUrl) as unknown as string
  const { port } = new SharedWorker(url, { type: 'module', name: 'dragoman' })
  port.onmessage = ({ data }: MessageEvent<ToTab>) => pass(data, sink)
  port.start()
  port.postMessage({ hello: token } satisfies FromTab)
  window.addEventListener('pagehide', () => port.postMessage({ bye: true } satisfies FromTab))
  window.addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload()
  })
}

function pass(message: ToTab, sink: Sink): void {
  if ('frames' in message) sink.frames(message.frames)
  else if ('link' in message) sink.link(message.link)
  else if ('reset' in message) sink.reset()
  else if ('away' in message) sink.away(message.away)
  else sink.listed()
}

function throughLeader(token: string, sink: Sink): void {
  const channel = new BroadcastChannel('dragoman')
  let position: string | null = null
  const here = (message: ToTab) => {
    if ('frames' in message) position = message.frames.at(-1)?.position ?? position
    pass(message, sink)
  }
  const everywhere = (message: ToTab) => {
    channel.postMessage(message)
    here(message)
  }
  channel.onmessage = ({ data }: MessageEvent<ToTab>) => here(data)
  sink.link('online')
  const lead = () => {
    new StreamReader(token, telling(everywhere), position)
    return new Promise<never>(() => undefined)
  }
  void navigator.locks.request('dragoman', lead)
}

function telling(tell: (message: ToTab) => void): Sink {
  return {
    frames: (frames) => tell({ frames }),
    link: (link) => tell({ link }),
    reset: () => tell({ reset: true }),
    listed: () => tell({ listed: true }),
    away: (away) => tell({ away }),
  }
}

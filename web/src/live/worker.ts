// The shared worker: one connection to the server, whatever the number of tabs. A browser opens six
// connections to a host; with a stream each, the seventh tab would not load.

import { StreamReader, type Frame, type Link } from './stream_reader'

export type ToTab = { frames: Frame[] } | { link: Link } | { reset: true } | { listed: true } | { away: string | null }
export type FromTab = { hello: string } | { bye: true }

declare const self: { onconnect: (event: MessageEvent) => void }

const ports = new Set<MessagePort>()
let reader: StreamReader | null = null
let known: string | null = null
let link: Link = 'connecting'
let away: string | null = null

function tell(message: ToTab): void {
  for (const port of ports) port.postMessage(message)
}

function read(token: string): void {
  reader?.stop()
  known = token
  reader = new StreamReader(token, {
    frames: (frames) => tell({ frames }),
    link: (now) => {
      link = now
      if (now !== 'online') away = null
      tell({ link: now })
    },
    reset: () => tell({ reset: true }),
    listed: () => tell({ listed: true }),
    away: (now) => {
      away = now
      tell({ away: now })
    },
  })
}

function heard(port: MessagePort, message: FromTab): void {
  if ('bye' in message) return void ports.delete(port)
  ports.add(port)
  if (message.hello !== known || link === 'refused') read(message.hello)
  else for (const message of [{ link }, { away }] satisfies ToTab[]) port.postMessage(message)
}

self.onconnect = ({ ports: [port] }) => {
  if (port === undefined) return
  port.onmessage = ({ data }: MessageEvent<FromTab>) => heard(port, data)
}

// The content of a message or a tool call: text, images, audio, files and links.

import { useState } from 'react'
import type { Content } from '../../core/generated/content'
import { baseName, bytes } from '../../core/text/format'
import { isBase64 } from '../../core/text/base64'
import { printedParts } from '../../core/text/printed'
import { visible } from '../../core/text/safe_text'
import { Icon } from '../common/icons'
import { Markdown } from './markdown'
import { Plain } from '../common/plain_text'
import { Sound } from './sound'

/** How words are meant: an agent writes Markdown, a person types, a tool prints. */
export type Words = 'markdown' | 'typed' | 'printed'

export function ContentView({ content, words = 'markdown' }: { content: Content; words?: Words }) {
  switch (content.type) {
    case 'text': return <Text text={content.text} words={words} />
    case 'image': return <Picture data={content.data} mime={content.mimeType} />
    case 'audio': return <Sound data={content.data} mime={content.mimeType} />
    case 'resource_link':
      return (
        <Target uri={content.uri} name={content.title || content.name}>
          {content.size != null && <small>{bytes(content.size)}</small>}
          {content.description && <small><Plain text={content.description} /></small>}
        </Target>
      )
    case 'resource': return <Embedded uri={content.uri} text={content.content ?? null} mime={content.mimeType ?? ''} blob={content.blob ?? null} />
    case 'unknown': return <Unknown kind={content.kind} raw={content.raw} />
  }
}

function Text({ text, words }: { text: string; words: Words }) {
  if (words === 'markdown') return <Markdown text={text} />
  if (words === 'typed') return <p className="typed"><Plain text={text} lines /></p>
  return (
    <>
      {printedParts(text).map((part, at) => part.fenced
        ? <Markdown key={at} text={part.text} />
        : <pre key={at} className="printed" tabIndex={0} aria-label="Output">{visible(part.text)}</pre>)}
    </>
  )
}

const PICTURES = /^image\/(png|jpeg|gif|webp|bmp|avif)$/

function Picture({ data, mime }: { data: string; mime: string }) {
  const [large, setLarge] = useState(false)
  if (!isBase64(data)) return <p className="quiet">Unreadable image.</p>
  if (!PICTURES.test(mime)) return <p className="quiet">Images of type <Plain text={mime} /> cannot be displayed.</p>
  return (
    <button type="button" className={`picture ${large ? 'large' : ''}`} onClick={() => setLarge(!large)} aria-label={large ? 'Shrink image' : 'Enlarge image'}>
      <img src={`data:${mime};base64,${data}`} alt="Image from the session" />
    </button>
  )
}

function Target({ uri, name, children }: { uri: string; name: string; children?: React.ReactNode }) {
  const web = /^https?:/i.test(uri)
  const label = <><Icon name={web ? 'globe' : 'file'} /> <Plain text={name || baseName(uri)} /></>
  return (
    <div className="chip" title={visible(uri)}>
      {web ? <a href={uri} target="_blank" rel="noopener noreferrer">{label}</a> : <span>{label}</span>}
      <small><Plain text={uri.replace(/^file:\/\//, '')} /></small>
      {children}
    </div>
  )
}

function Embedded({ uri, text, mime, blob }: { uri: string; text: string | null; mime: string; blob: string | null }) {
  if (blob !== null && PICTURES.test(mime)) return <Picture data={blob} mime={mime} />
  return (
    <details className="embedded">
      <summary><Icon name="file" /> <Plain text={baseName(uri)} /> <small><Plain text={mime} /></small></summary>
      {text === null ? <p className="quiet">{blob === null ? 'Empty.' : `${bytes(blob.length * 0.75)} of data.`}</p> : <pre>{visible(text)}</pre>}
    </details>
  )
}

export function Unknown({ kind, raw }: { kind: string; raw: string }) {
  return (
    <details className="embedded">
      <summary><Icon name="info" /> Unknown content: <Plain text={kind} /></summary>
      <pre>{visible(raw)}</pre>
    </details>
  )
}

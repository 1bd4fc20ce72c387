// Files to send along: uploaded as soon as they are chosen, dropped or pasted.

import { bytes } from '../../core/text/format'
import { upload, type Upload } from '../../live/api'
import { Signal, useSignal } from '../../live/signal'
import { Icon, Spinner } from '../common/icons'
import { Plain } from '../common/plain_text'
import { shell } from '../shell/shell'

const MAX_BYTES = 10 * 1024 * 1024
const PICTURE = /^image\/(png|jpeg|gif|webp|bmp|avif)$/

/** `picture` is the address of an image in this page's memory. */
export interface Attachment { key: number; name: string; size: number; picture: string | null; done: Upload | null }

export interface Attachments {
  items: Attachment[]
  busy: boolean
  add(files: Iterable<File>): void
  remove(key: number): void
  clear(): void
  restore(items: Attachment[]): void
}

let keys = 0
// They stay with their session while one looks elsewhere.
const kept = new Map<string, Attachment[]>()
const changed = new Signal()

export function useAttachments(session: string): Attachments {
  useSignal(changed)
  return attachmentsOf(session)
}

export function attachmentsOf(session: string): Attachments {
  const items = kept.get(session) ?? []
  const change = (next: (now: Attachment[]) => Attachment[]) => {
    kept.set(session, next(kept.get(session) ?? []))
    changed.emit()
  }
  const remove = (key: number) => change((now) => now.filter((item) => item.key !== key))
  const put = async (file: File) => {
    if (file.size > MAX_BYTES) return shell.say(`${file.name} is over 10 MB. Mention it with @ instead.`, true)
    const key = ++keys
    change((now) => [...now, { key, name: file.name || 'pasted file', size: file.size, picture: PICTURE.test(file.type) ? URL.createObjectURL(file) : null, done: null }])
    try {
      const done = await upload(file)
      change((now) => now.map((item) => (item.key === key ? { ...item, done } : item)))
    } catch (error) {
      remove(key)
      shell.fail(error)
    }
  }
  return {
    items,
    busy: items.some((item) => item.done === null),
    add: (files) => { for (const file of files) void put(file) },
    remove,
    clear: () => change(() => []),
    restore: (items) => change((now) => [...items, ...now]),
  }
}

export function AttachmentList({ attachments }: { attachments: Attachments }) {
  if (attachments.items.length === 0) return null
  return (
    <ul className="attachments" aria-label="Attachments">
      {attachments.items.map((item) => (
        <li key={item.key} className="chip">
          {item.done === null ? <Spinner /> : item.picture === null ? <Icon name="clip" /> : <img src={item.picture} alt="" width="28" height="28" />} <Plain text={item.name} /> <small>{bytes(item.size)}</small>
          <button type="button" className="ghost" aria-label={`Remove ${item.name}`} onClick={() => attachments.remove(item.key)}><Icon name="cross" /></button>
        </li>
      ))}
    </ul>
  )
}

// Commands and files to choose from while one types. The list belongs to the text field: the focus
// stays there, the chosen one is named by aria-activedescendant.

import { useEffect, useState } from 'react'
import type { Completing } from '../../core/completion'
import type { Command } from '../../core/generated/facts'
import { sessions } from '../../live/api'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

export interface Suggestion { value: string; note: string; folder: boolean }

export function useSuggestions(session: string, at: Completing | null, commands: Command[]): Suggestion[] {
  const [files, setFiles] = useState<Suggestion[]>([])
  const query = at?.kind === 'file' ? at.query : null
  useEffect(() => {
    if (query === null) return setFiles([])
    const abort = new AbortController()
    const timer = setTimeout(() => {
      sessions.files(session, query, abort.signal).then(
        (told) => setFiles(told.files.map(({ path, kind }) => ({ value: path, note: '', folder: kind === 'folder' }))),
        () => undefined,
      )
    }, 80)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [session, query])
  if (at === null) return []
  return at.kind === 'file' ? files : matching(commands, at.query)
}

function matching(commands: Command[], query: string): Suggestion[] {
  const words = query.toLowerCase()
  return commands
    .filter((command) => command.name.toLowerCase().includes(words))
    .sort((a, b) => Number(b.name.toLowerCase().startsWith(words)) - Number(a.name.toLowerCase().startsWith(words)))
    .slice(0, 12)
    .map((command) => ({ value: command.name, note: [command.description, command.hint && `‹${command.hint}›`].filter(Boolean).join(' '), folder: false }))
}

interface Props { id: string; items: Suggestion[]; chosen: number; slash: boolean; pick: (item: Suggestion) => void }

export function CompletionList({ id, items, chosen, slash, pick }: Props) {
  if (items.length === 0) return null
  return (
    <ul className="completion" id={id} role="listbox" aria-label={slash ? 'Commands' : 'Files'}>
      {items.map((item, at) => (
        <li key={item.value} id={`${id}-${at}`} role="option" aria-selected={at === chosen} onMouseDown={(event) => { event.preventDefault(); pick(item) }}>
          {!slash && <Icon name={item.folder ? 'folder' : 'file'} />}
          <code>{slash && '/'}<Plain text={item.value} /></code> {item.note && <small><Plain text={item.note} /></small>}
        </li>
      ))}
    </ul>
  )
}

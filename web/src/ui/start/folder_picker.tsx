// Which folder a session works in: those used last, the folders beneath one, or a path that is typed.

import { useRef, useState, type KeyboardEvent } from 'react'
import { baseName } from '../../core/text/format'
import { reveal } from '../../core/text/safe_text'
import { folders } from '../../live/api'
import { Icon } from '../common/icons'
import { Popover } from '../common/picker'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { recentFolders } from './recent_folders'

interface Props { value: string; onChange: (folder: string) => void }

export function FolderPicker({ value, onChange }: Props) {
  const [open, setOpen] = useState(false)
  const opener = useRef<HTMLButtonElement>(null)
  const close = () => {
    setOpen(false)
    opener.current?.focus()
  }
  const here = useRefetch(`folder ${value}`, 0, () => folders(value || undefined)).value
  const shown = value || (here?.path ?? '')
  const words = shown === '' ? 'Folder' : baseName(shown)
  return (
    <>
      <button ref={opener} type="button" className="picker" aria-haspopup="dialog" aria-expanded={open} title={reveal(shown)} data-value={shown} onClick={() => setOpen(!open)}>
        <Icon name="folder" /> <span className="hidden">Folder: </span><span className="words"><Plain text={words} /></span>
        {here?.problem != null && <span className="wrong"><Icon name="alert" /> <Plain text={here.problem} /></span>}
        {here?.branch != null && <span className="branch"><Icon name="fork" /> <Plain text={here.branch} /></span>} <Icon name="chevron" className="turned" />
      </button>
      {open && (
        <Popover opener={opener.current} close={() => setOpen(false)} dismiss={close} label="Folder">
          <Browser from={shown} choose={(folder) => { onChange(folder); close() }} />
        </Popover>
      )}
    </>
  )
}

/** `at` is the folder whose folders are listed; what is typed is taken as it is. */
function Browser({ from, choose }: { from: string; choose: (folder: string) => void }) {
  const [at, setAt] = useState(from)
  const [typed, setTyped] = useState(from)
  const told = useRefetch(`browse ${at}`, 0, () => folders(at || undefined))
  const listing = told.value
  const recent = recentFolders().filter((folder) => folder !== at)
  const go = (path: string) => {
    setAt(path)
    setTyped(path)
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    event.preventDefault()
    event.stopPropagation()
    choose(typed.trim())
  }
  return (
    <div className="browser">
      <div className="typedpath">
        <input data-first="" aria-label="Path of the folder" value={typed} spellCheck={false} onChange={(event) => setTyped(event.target.value)} onKeyDown={onKey} onFocus={(event) => event.target.select()} />
        <button type="button" className="primary" onClick={() => choose(typed.trim())}>Use</button>
      </div>
      {(told.failure || listing?.problem) && <p className="wrong" role="alert"><Plain text={told.failure || (listing?.problem ?? '')} /></p>}
      {listing !== null && (
        <ul className="pickerlist" aria-label={`Folders in ${reveal(baseName(listing.path))}`}>
          {listing.parent !== null && <li><button type="button" className="ghost" onClick={() => go(listing.parent ?? '/')}><Icon name="up" /> <Plain text={baseName(listing.parent)} /></button></li>}
          {listing.folders.filter((name) => !name.startsWith('.')).map((name) => (
            <li key={name}><button type="button" className="ghost" onClick={() => go(`${listing.path.replace(/\/+$/, '')}/${name}`)}><Icon name="folder" /> <Plain text={name} /></button></li>
          ))}
          {!listing.complete && <li className="quiet">More are not listed: type the path.</li>}
        </ul>
      )}
      {recent.length > 0 && (
        <>
          <h3>Recent</h3>
          <ul className="pickerlist" aria-label="Recent folders">
            {recent.slice(0, 6).map((folder) => <li key={folder}><button type="button" className="ghost" title={reveal(folder)} onClick={() => choose(folder)}><Icon name="clock" /> <span className="words"><Plain text={baseName(folder)} /><small><Plain text={folder} /></small></span></button></li>)}
          </ul>
        </>
      )}
    </div>
  )
}

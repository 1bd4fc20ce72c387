// The files that a turn changed, as they were after it: from the snapshots of the folder.

import { useEffect, useState } from 'react'
import { within } from '../../core/text/format'
import { sessions, type FileChange } from '../../live/api'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

export function FilesThen({ id, turn, close }: { id: string; turn: string; close: () => void }) {
  const [files, setFiles] = useState<FileChange[] | null>(null)
  const [failure, setFailure] = useState('')
  const [path, setPath] = useState<string | null>(null)
  useEffect(() => {
    sessions.changes(id, turn).then(
      ({ changes }) => {
        setFiles(changes)
        setPath(changes[0]?.path ?? null)
      },
      (error: unknown) => setFailure(error instanceof Error ? error.message : String(error)),
    )
  }, [id, turn])
  const folder = store.summaries.get(id)?.cwd ?? ''
  const shown = files?.find((file) => file.path === path)
  return (
    <section className="filesthen" aria-label="Files after this turn">
      <header><h2>Files that this turn changed, as they were after it</h2> <button type="button" className="ghost" aria-label="Close the files" onClick={close}><Icon name="cross" /></button></header>
      {failure !== '' && <p className="notice warning"><Icon name="alert" /> <span><Plain text={failure} /></span></p>}
      {files === null && failure === '' && <p className="quiet">Looking…</p>}
      {files?.length === 0 && <p className="quiet">This turn changed no files.</p>}
      <ul>
        {files?.map((file) => (
          <li key={file.path}>
            <button type="button" className="ghost" aria-pressed={file.path === path} onClick={() => setPath(file.path)}><Icon name="file" /> <Plain text={within(file.path, folder)} /></button>
          </li>
        ))}
      </ul>
      {shown !== undefined && <Content file={shown} />}
    </section>
  )
}

function Content({ file }: { file: FileChange }) {
  if (file.after == null) return <p className="quiet">{file.before == null ? 'Its content cannot be shown.' : 'It was deleted.'}</p>
  return <pre tabIndex={0} aria-label={`Content of ${file.path}`}><Plain text={file.after} lines /></pre>
}

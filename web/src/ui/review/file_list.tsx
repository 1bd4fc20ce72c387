// The changed files as a tree, with what is to be known of each before one looks at it.

import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState } from 'react'
import { treeRows, type TreeRow } from '../../core/changes/file_tree'
import { within } from '../../core/text/format'
import { reveal } from '../../core/text/safe_text'
import type { FileChange } from '../../live/api'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { Counts, StatusLetter } from './file_card'

interface Props {
  changes: FileChange[]
  cwd: string
  viewed: ReadonlySet<string>
  /** How many comments each file has. */
  comments: ReadonlyMap<string, number>
  current: number
  show: (at: number) => void
}

const ROW = 28
const MANY = 12

export function FileList({ changes, cwd, viewed, comments, current, show }: Props) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const [filter, setFilter] = useState('')
  const names = useMemo(() => changes.map(({ path }) => within(path, cwd)), [changes, cwd])
  const rows = useMemo(() => {
    const wanted = filter.toLowerCase()
    return treeRows(names, closed, (at) => names[at]?.toLowerCase().includes(wanted) ?? false)
  }, [names, closed, filter])
  const scroller = useRef<HTMLDivElement>(null)
  const drawn = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 12 })
  const toggle = (key: string) => setClosed((now) => {
    const next = new Set(now)
    if (!next.delete(key)) next.add(key)
    return next
  })
  return (
    <nav className="filelist" aria-label="Changed files">
      {changes.length > MANY && <input type="search" aria-label="Filter files" placeholder="Filter files" value={filter} onChange={(event) => setFilter(event.target.value)} />}
      <div className="treescroll" ref={scroller}>
        <ul style={{ height: drawn.getTotalSize() }}>
          {drawn.getVirtualItems().map(({ index, start }) => {
            const row = rows[index]
            if (row === undefined) return null
            const change = row.file === null ? undefined : changes[row.file]
            return (
              <li key={row.key} style={{ top: start, paddingLeft: 4 + row.depth * 12 }}>
                {change === undefined
                  ? <FolderRow row={row} open={!closed.has(row.key)} toggle={() => toggle(row.key)} />
                  : <FileRow row={row} change={change} viewed={viewed.has(change.path)} comments={comments.get(change.path) ?? 0} current={current === row.file} show={show} />}
              </li>
            )
          })}
        </ul>
        {rows.length === 0 && <p className="empty">No file has this in its name.</p>}
      </div>
    </nav>
  )
}

function FolderRow({ row, open, toggle }: { row: TreeRow; open: boolean; toggle: () => void }) {
  return <button type="button" className="ghost treerow" aria-expanded={open} onClick={toggle}><Icon name="chevron" className={open ? 'turned' : ''} /> <span className="name"><Plain text={row.name} /></span></button>
}

interface FileRowProps { row: TreeRow; change: FileChange; viewed: boolean; comments: number; current: boolean; show: (at: number) => void }

function FileRow({ row, change, viewed, comments, current, show }: FileRowProps) {
  return (
    <button type="button" className={`ghost treerow ${viewed ? 'viewed' : ''}`} aria-current={current || undefined} title={reveal(change.path)} onClick={() => row.file !== null && show(row.file)}>
      <StatusLetter change={change} /> <span className="name"><Plain text={row.name} /></span>
      {change.protected && <span className="alarm"><Icon name="alert" /><span className="hidden">protected</span></span>}
      {comments > 0 && <span className="tag">{comments}<span className="hidden"> {comments === 1 ? 'comment' : 'comments'}</span></span>}
      {viewed && <><Icon name="check" /><span className="hidden">viewed</span></>}
      <Counts added={change.added} removed={change.removed} binary={change.binary} />
    </button>
  )
}

/** What is said instead of a list that has no room. */
export function viewedWords(viewed: number, all: number): string {
  return `${viewed} of ${all} viewed`
}

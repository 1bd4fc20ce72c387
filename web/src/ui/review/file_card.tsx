// One changed file in a review: who wrote it, what is done about it, its hunks and the comments on them.

import { memo, useMemo, type ReactNode } from 'react'
import { colours } from '../../core/text/code_tokens'
import type { DiffRow } from '../../core/changes/diff'
import { anchorOf, changedRows, emphasised, hunksOf, placeOf, saysMore, type ReviewHunk } from '../../core/changes/hunks'
import { bytes, plural, table, within } from '../../core/text/format'
import type { Author } from '../../core/generated/facts'
import { reveal } from '../../core/text/safe_text'
import type { FileChange } from '../../live/api'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { CommentCard, NewComment, useBegun } from './comments'
import { Lines } from './hunk_view'
import type { PendingComment } from './pending_review'

const AUTHORS: Record<Author, [string, string]> = {
  host: ['through Dragoman', 'Dragoman wrote it for the agent'],
  agent: ['by the agent', 'The agent, or a command it ran, wrote it'],
  other: ['by someone else', 'Written between turns: by you, another session or another program'],
  unknown: ['author unknown', 'Written during a turn; it is uncertain by whom'],
  restore: ['put back', 'Something was put back here'],
  imported: ['imported', 'As the file says that this session was imported from'],
}

export function Authors({ by }: { by: Author[] }) {
  return <>{by.map((each) => <span key={each} className={`tag by-${each}`} title={AUTHORS[each][1]}>{AUTHORS[each][0]}</span>)}</>
}

const STATUS = table<[string, string]>({ added: ['A', 'new file'], deleted: ['D', 'deleted'], renamed: ['R', 'renamed'], modified: ['M', 'modified'] })

export function StatusLetter({ change }: { change: FileChange }) {
  const [letter, word] = STATUS[change.status] ?? ['M', 'modified']
  return <span className={`letter ${change.status}`} title={word}><span aria-hidden="true">{letter}</span><span className="hidden">{word}</span></span>
}

export function Counts({ added, removed, binary = false }: { added: number; removed: number; binary?: boolean }) {
  if (binary) return <span className="counts quiet">binary</span>
  if (added + removed === 0) return null
  return <span className="counts"><span className="added">+{added}</span> <span className="removed">−{removed}</span></span>
}

/** What a person can do about a file or a hunk of it. */
export interface FileActions {
  view: (change: FileChange, viewed: boolean) => void
  fold: (change: FileChange, folded: boolean) => void
  keep: (change: FileChange, hunk: ReviewHunk, kept: boolean) => void
  putBack: (change: FileChange, hunk: ReviewHunk | null) => void
}

interface Props extends FileActions {
  session: string
  cwd: string
  change: FileChange
  at: number
  split: boolean
  viewed: boolean
  folded: boolean
  kept: ReadonlySet<string>
  /** Hunks, and paths, that are put back when the turn has ended. */
  waiting: ReadonlySet<string>
  comments: PendingComment[]
  tracked: boolean
}

export const FileCard = memo(function FileCard(props: Props) {
  const { session, cwd, change, at, folded, comments } = props
  const hunks = hunksOf(change)
  const [begun, setBegun] = useBegun(session, change.path)
  const placed = useMemo(() => comments.map((comment) => ({ comment, anchor: anchorOf(comment, hunks, change.after) })), [comments, hunks, change])
  const above = placed.filter(({ anchor }) => anchor.row === null)
  const name = within(change.path, cwd)
  return (
    <section className={`filecard ${change.protected ? 'protected' : ''}`} data-change="" data-stop={`${at}:-1`} tabIndex={-1} aria-label={reveal(name)}>
      <FileHead {...props} name={name} comment={() => setBegun({ place: { side: 'new', start: 0, end: 0, lines: [] }, text: '' })} />
      {change.protected && <p className="loud" role="note"><Icon name="alert" /> <span><strong>A protected file was written.</strong> <Plain text={change.protected} /></span></p>}
      {!folded && (
        <>
          <Facts change={change} cwd={cwd} tracked={props.tracked} />
          {begun?.place.start === 0 && <NewComment session={session} path={change.path} begun={begun} change={setBegun} />}
          {above.map(({ comment, anchor }) => <CommentCard key={comment.id} session={session} comment={comment} anchor={anchor} />)}
          <Hunks {...props} hunks={hunks} placed={placed} begun={begun} setBegun={setBegun} />
        </>
      )}
    </section>
  )
})

function FileHead({ change, name, cwd, viewed, folded, waiting, view, fold, putBack, comment }: Props & { name: string; comment: () => void }) {
  const folder = name.slice(0, name.lastIndexOf('/') + 1)
  return (
    <header className="filehead">
      <button type="button" className="ghost small" aria-expanded={!folded} aria-label={folded ? 'Expand the file' : 'Collapse the file'} onClick={() => fold(change, !folded)}><Icon name="chevron" className={folded ? '' : 'turned'} /></button>
      <StatusLetter change={change} />
      <h3 className="path" title={reveal(change.path)}>
        {change.oldPath !== null && <span className="quiet"><Plain text={within(change.oldPath, cwd)} /> → </span>}<span className="quiet"><Plain text={folder} /></span><Plain text={name.slice(folder.length)} />
      </h3>
      <Counts added={change.added} removed={change.removed} binary={change.binary} />
      <Authors by={change.by} />
      <div className="fileacts">
        <button type="button" className="ghost small" data-act="comment" title="Comment on the file" aria-label="Comment on the file" onClick={comment}><Icon name="edit" /></button>
        {change.revertible && (waiting.has(change.path)
          ? <span className="tag high">put back after the turn</span>
          : <button type="button" className="ghost small" data-act="putback" title="Put the file back" onClick={() => putBack(change, null)}><Icon name="undo" /> <span className="word">Put back file</span></button>)}
        <label className="check"><input type="checkbox" data-act="viewed" checked={viewed} onChange={(event) => view(change, event.target.checked)} /> Viewed</label>
      </div>
    </header>
  )
}

const MODES = table<string>({ '100755': 'executable', '100644': 'not executable', '120000': 'a symbolic link', '040000': 'a folder', '160000': 'a repository' })

/** What there is to say besides its lines. */
function Facts({ change, cwd, tracked }: { change: FileChange; cwd: string; tracked: boolean }) {
  const facts: ReactNode[] = []
  const { oldMode, newMode, source } = change
  const isFolder = newMode === '040000' || oldMode === '040000'
  if (isFolder) facts.push(change.status === 'deleted' ? 'An empty folder was deleted.' : 'A new, empty folder.')
  else if (oldMode && newMode && oldMode !== newMode) facts.push(`It was ${MODES[oldMode] ?? oldMode} and is now ${MODES[newMode] ?? newMode}.`)
  else if (newMode === '120000') facts.push('A symbolic link: what is shown is where it leads.')
  if (change.oldPath !== null) facts.push(<>Renamed from <Plain text={within(change.oldPath, cwd)} />.</>)
  if (change.binary) facts.push(`Binary, or too large to compare: ${sizes(change)}.`)
  if (!tracked && source === 'agent') facts.push('As reported by the agent; Dragoman did not write it.')
  if (source === 'imported') facts.push('Imported: reported by the file this session came from.')
  if (!isFolder && !change.binary && hunksOf(change).length === 0 && change.added + change.removed === 0) {
    if (change.status === 'added') facts.push('An empty file.')
    if (change.status === 'deleted') facts.push('An empty file was deleted.')
  }
  if (facts.length === 0) return null
  return <p className="filefacts">{facts.map((fact, at) => <span key={at}><Icon name="info" /> {fact} </span>)}</p>
}

function sizes({ status, oldSize, newSize }: FileChange): string {
  if (status === 'added') return bytes(newSize)
  return status === 'deleted' ? `${bytes(oldSize)} before` : `${bytes(oldSize)} before, ${bytes(newSize)} now`
}

interface HunksProps extends Props {
  hunks: ReviewHunk[]
  placed: { comment: PendingComment; anchor: ReturnType<typeof anchorOf> }[]
  begun: ReturnType<typeof useBegun>[0]
  setBegun: ReturnType<typeof useBegun>[1]
}

const NOTHING = () => false

function Hunks({ hunks, placed, begun, setBegun, ...props }: HunksProps) {
  const { session, change, at, split } = props
  const coloured = useMemo(() => colours(change, hunks), [change, hunks])
  const marks = useMemo(() => emphasised(hunks.flatMap(({ rows }) => [...rows, GAP])), [hunks])
  if (hunks.length === 0) return !change.binary && saysMore(change) ? <pre className="patch" tabIndex={0} aria-label="Changed lines"><Plain text={change.diff} lines /></pre> : null
  const below = (row: DiffRow) => (
    <>
      {placed.filter(({ anchor }) => anchor.row === row).map(({ comment, anchor }) => <CommentCard key={comment.id} session={session} comment={comment} anchor={anchor} />)}
      {begun !== null && begun.place.start > 0 && isEnd(begun.place, row) && <NewComment session={session} path={change.path} begun={begun} change={setBegun} />}
    </>
  )
  const chosen = begun === null || begun.place.start === 0 ? NOTHING : (row: DiffRow) => isIn(begun.place, row)
  const comment = (rows: DiffRow[]) => setBegun({ place: placeOf(rows), text: begun?.text ?? '' })
  return (
    <>
      {hunks.map((hunk, of) => (
        <Hunk key={`${hunk.key}:${of}`} {...props} hunk={hunk} stop={`${at}:${of}`} comment={comment}>
          <Lines hunk={hunk} split={split} colours={coloured} marks={marks} below={below} chosen={chosen} comment={comment} />
        </Hunk>
      ))}
    </>
  )
}

/** Between two hunks: lines of one do not replace lines of the other. */
const GAP: DiffRow = { sign: '@', text: '', old: null, new: null }

type Span = ReturnType<typeof placeOf>

function isIn({ side, start, end }: Span, row: DiffRow): boolean {
  const number = row[side]
  return number !== null && number >= start && number <= end && (side === 'new' || row.new === null)
}

function isEnd(place: Span, row: DiffRow): boolean {
  return row[place.side] === place.end && isIn(place, row)
}

function Hunk({ hunk, stop, change, kept, waiting, keep, putBack, comment, children }: Props & { hunk: ReviewHunk; stop: string; comment: (rows: DiffRow[]) => void; children: ReactNode }) {
  const isKept = kept.has(hunk.key)
  const { rows } = hunk
  const numbers = rows.flatMap((row) => row.new ?? row.old ?? [])
  const [first, last] = [numbers[0] ?? 0, numbers.at(-1) ?? 0]
  const words = first === 0 ? 'Changed lines' : first === last ? `Line ${first}` : `Lines ${first}–${last}`
  return (
    <section className={`hunk ${isKept ? 'kept' : ''}`} data-stop={stop} tabIndex={-1} aria-label={`${words}${isKept ? ', kept' : ''}`}>
      <header>
        <span className="quiet">{words}</span>
        {change.by.length > 1 && <Authors by={hunk.by} />}
        {isKept && <span className="tag good"><Icon name="check" /> kept</span>}
        {isKept && <Counts added={hunk.added} removed={hunk.removed} />}
        <span className="space" />
        {isKept
          ? <button type="button" className="ghost small" data-act="keep" onClick={() => keep(change, hunk, false)}>Review again</button>
          : <>
            <button type="button" className="ghost small" data-act="comment" title="Comment on these lines (c)" onClick={() => comment(changedRows(hunk))}>Comment</button>
            {hunk.id !== null && change.revertible && (waiting.has(hunk.key)
              ? <span className="tag high">put back after the turn</span>
              : <button type="button" className="ghost small" data-act="putback" title="Put the earlier lines back (u)" onClick={() => putBack(change, hunk)}><Icon name="undo" /> Put back</button>)}
            <button type="button" className="ghost small" data-act="keep" title="Keep this change (y)" onClick={() => keep(change, hunk, true)}><Icon name="check" /> Keep</button>
          </>}
      </header>
      {!isKept && <div role="group" aria-label={`Changed lines, ${plural(rows.length, 'row')}`}>{children}</div>}
    </section>
  )
}


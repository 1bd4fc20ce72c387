// A change to a file, drawn line by line with + and −. Static: no editor for each diff of a thread.

import { memo, useMemo, useState, type ReactNode } from 'react'
import type { Diff } from '../../core/generated/content'
import { askedRows, diffRows, type DiffRow, type FileDiff } from '../../core/changes/diff'
import { bothEnds, isEmpty, type Part } from '../../core/text/excerpt'
import { within } from '../../core/text/format'
import { visibleLine } from '../../core/text/safe_text'
import { copy } from '../common/clipboard'
import { LeftRow, useEnds } from '../common/long_text'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'

const FOLDED_ROWS = 24
const MORE_ROWS = 1000

export function DiffCounts({ file }: { file: Pick<FileDiff, 'added' | 'removed' | 'created' | 'unchanged'> }) {
  if (file.unchanged) return <span className="counts"><span className="tag">No change</span></span>
  return (
    <span className="counts">
      {file.created && <span className="tag">new file</span>}
      <span className="added">+{file.added}</span> <span className="removed">−{file.removed}</span>
    </span>
  )
}

interface Props {
  diff: Diff
  cwd: string
  whole?: boolean
}

export const DiffView = memo(function DiffView({ diff, cwd, whole = false }: Props) {
  const [asked, setAsked] = useState(false)
  const file = useMemo(() => diffRows(diff, asked), [diff, asked])
  const [shown, setShown] = useState(whole ? MORE_ROWS : FOLDED_ROWS)
  const rows = file.rows.slice(0, shown)
  const rest = file.rows.length - rows.length
  return (
    <DiffFrame diff={diff} file={file} cwd={cwd}>
      {rows.length > 0 && <DiffTable parts={rows.map((row) => ({ row }))} />}
      {file.postponed && !asked && <button type="button" className="more" onClick={() => setAsked(true)}>Compare</button>}
      {rest > 0 && <button type="button" className="more" onClick={() => setShown(shown + MORE_ROWS)}>Show {Math.min(rest, MORE_ROWS)} more lines</button>}
    </DiffFrame>
  )
})

/** A change that someone has to judge: both ends at once, and no line that continues out of sight. */
export const AskedDiff = memo(function AskedDiff({ diff, cwd }: { diff: Diff; cwd: string }) {
  const file = useMemo(() => askedRows(diff), [diff])
  const { parts, more } = useEnds(file.rows, emptinessOf)
  const [whole, setWhole] = useState(false)
  const cut = !whole && file.rows.some(({ text }) => bothEnds(text) !== bothEnds(text, true))
  return (
    <DiffFrame diff={diff} file={file} cwd={cwd} copies>
      {diff.replaces && <p className="replaces"><Icon name="alert" /> <span>Replaces <Plain text={diff.replaces} /></span></p>}
      {parts.length > 0 && <DiffTable parts={parts} more={more} shorten={!whole} />}
      {cut && <button type="button" className="more" onClick={() => setWhole(true)}>Show long lines in full</button>}
    </DiffFrame>
  )
})

function emptinessOf({ sign, text }: DiffRow): string | null {
  return sign !== '@' && isEmpty(text) ? sign : null
}

function DiffFrame({ diff, file, cwd, copies = false, children }: { diff: Diff; file: FileDiff; cwd: string; copies?: boolean; children: ReactNode }) {
  return (
    <figure className="diff">
      <figcaption>
        <Icon name="file" /> <span className="path"><Plain text={within(diff.path, cwd)} /></span>
        {file.note && <span className="tag"><Plain text={file.note} /></span>}
        <DiffCounts file={file} />
        {copies && <button type="button" className="ghost small" title="Copy the path" aria-label="Copy the path" onClick={() => copy(diff.path, 'Path')}><Icon name="copy" /></button>}
      </figcaption>
      {children}
    </figure>
  )
}

const SIGNS = { '+': 'added', '-': 'removed', ' ': 'kept', '@': 'gap' } as const
const SAID = { '+': 'added', '-': 'removed', ' ': '', '@': '' } as const

/** How a line ends is of interest where it changes. */
function lineOf(row: DiffRow): string {
  return visibleLine(row.sign === ' ' ? row.text.replace(/\r$/, '') : row.text)
}

interface TableProps {
  parts: Part<DiffRow>[]
  more?: () => void
  shorten?: boolean
}

function DiffTable({ parts, more = () => undefined, shorten = false }: TableProps) {
  return (
    <div className="difftable" role="group" aria-label="Changed lines" tabIndex={0}>
      <div className="lines">
        {parts.map((part, at) => 'left' in part
          ? <div key={at} className="line gap"><LeftRow left={part.left} more={more} /></div>
          : <Line key={at} row={part.row} shorten={shorten} />)}
      </div>
    </div>
  )
}

function Line({ row, shorten }: { row: DiffRow; shorten: boolean }) {
  const text = lineOf(row)
  return (
    <div className={`line ${SIGNS[row.sign]}`}>
      <span className="number">{row.new ?? row.old ?? ''}</span>
      <span className="sign" aria-label={SAID[row.sign]}>{row.sign === '-' ? '−' : row.sign === '@' ? '⋯' : row.sign}</span>
      <span className="text">{(shorten ? bothEnds(text) : text) || ' '}</span>
    </div>
  )
}

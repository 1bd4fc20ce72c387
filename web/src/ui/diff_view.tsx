// A change to a file, drawn line by line with + and −. Static: no editor for each diff of a thread.

import { memo, useMemo, useState } from 'react'
import type { Diff } from '../core/content'
import { diffRows, type DiffRow, type FileDiff } from '../core/diff'
import { within } from '../core/format'
import { visibleLine } from '../core/visible'
import { Icon } from './icons'
import { Plain } from './plain'

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
  onLine?: (row: DiffRow) => void
}

export const DiffView = memo(function DiffView({ diff, cwd, whole = false, onLine }: Props) {
  const file = useMemo(() => diffRows(diff), [diff])
  const [shown, setShown] = useState(whole ? MORE_ROWS : FOLDED_ROWS)
  const rows = file.rows.slice(0, shown)
  const rest = file.rows.length - rows.length
  return (
    <figure className="diff">
      <figcaption>
        <Icon name="file" /> <span className="path"><Plain text={within(diff.path, cwd)} /></span>
        {file.note && <span className="tag"><Plain text={file.note} /></span>}
        <DiffCounts file={file} />
      </figcaption>
      {rows.length > 0 && <DiffTable rows={rows} onLine={onLine} />}
      {rest > 0 && <button type="button" className="more" onClick={() => setShown(shown + MORE_ROWS)}>Show {Math.min(rest, MORE_ROWS)} more lines</button>}
    </figure>
  )
})

const SIGNS = { '+': 'added', '-': 'removed', ' ': 'kept', '@': 'gap' } as const
const SAID = { '+': 'added', '-': 'removed', ' ': '', '@': '' } as const

/** How a line ends is of interest where it changes. */
function lineOf(row: DiffRow): string {
  return visibleLine(row.sign === ' ' ? row.text.replace(/\r$/, '') : row.text)
}

export function DiffTable({ rows, onLine }: { rows: DiffRow[]; onLine?: ((row: DiffRow) => void) | undefined }) {
  return (
    <div className="difftable" role="group" aria-label="Changed lines" tabIndex={0}>
      <div className="lines">
        {rows.map((row, at) => (
          <div key={at} className={`line ${SIGNS[row.sign]}`}>
            <span className="number">{row.new ?? row.old ?? ''}</span>
            <span className="sign" aria-label={SAID[row.sign]}>{row.sign === '-' ? '−' : row.sign === '@' ? '⋯' : row.sign}</span>
            <span className="text">{lineOf(row) || ' '}</span>
            {onLine && row.sign !== '@' && (
              <button type="button" className="ghost note" aria-label={`Comment on line ${row.new ?? row.old ?? ''}`} onClick={() => onLine(row)}>
                <Icon name="plus" />
              </button>
            )}
          </div>
        ))}
      </div>
    </div>
  )
}

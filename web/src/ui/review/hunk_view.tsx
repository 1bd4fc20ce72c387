// One hunk: its lines with colours, below each other or side by side, with comments between them.

import { memo, useState, type MouseEvent, type ReactNode } from 'react'
import { withMark, type Token } from '../../core/text/code_tokens'
import type { DiffRow } from '../../core/changes/diff'
import { pairs, rowsBetween, type ReviewHunk } from '../../core/changes/hunks'
import { visibleLine } from '../../core/text/safe_text'

export interface LinesProps {
  hunk: ReviewHunk
  split: boolean
  colours: Map<DiffRow, Token[]>
  marks: Map<DiffRow, [number, number]>
  /** What is drawn below a row. */
  below: (row: DiffRow) => ReactNode
  /** Rows of a comment that is being written. */
  chosen: (row: DiffRow) => boolean
  comment: (rows: DiffRow[]) => void
}

const FIRST_ROWS = 300
const MORE_ROWS = 1000

export const Lines = memo(function Lines({ hunk, split, colours, marks, below, chosen, comment }: LinesProps) {
  const [most, setMost] = useState(FIRST_ROWS)
  const [last, setLast] = useState<DiffRow | null>(null)
  const rows = hunk.rows.slice(0, most)
  const choose = (row: DiffRow, event: MouseEvent) => {
    setLast(row)
    comment(event.shiftKey && last !== null ? rowsBetween(hunk.rows, last, row) : [row])
  }
  const cell = (row: DiffRow | null, side: 'old' | 'new' | null) => <Cell row={row} side={side} tokens={row && colours.get(row)} mark={row && marks.get(row)} chosen={row !== null && chosen(row)} choose={choose} />
  return (
    <div className={`codelines ${split ? 'split' : ''}`}>
      {split
        ? pairs(rows).map(({ left, right }, at) => (
          <div key={at}>
            <div className="pair">{cell(left, 'old')}{cell(right, 'new')}</div>
            {left !== null && left !== right && below(left)}{right !== null && below(right)}
          </div>
        ))
        : rows.map((row, at) => <div key={at}>{cell(row, null)}{below(row)}</div>)}
      {hunk.rows.length > most && <button type="button" className="more" onClick={() => setMost(most + MORE_ROWS)}>Show {Math.min(hunk.rows.length - most, MORE_ROWS)} more lines</button>}
    </div>
  )
})

const SIGNS = { '+': 'added', '-': 'removed', ' ': 'kept', '@': 'gap' } as const
const SAID = { '+': 'added', '-': 'removed', ' ': '', '@': '' } as const

interface CellProps {
  row: DiffRow | null
  /** In which version it stands; null where both are below each other. */
  side: 'old' | 'new' | null
  tokens: Token[] | null | undefined
  mark: [number, number] | null | undefined
  chosen: boolean
  choose: (row: DiffRow, event: MouseEvent) => void
}

function Cell({ row, side, tokens, mark, chosen, choose }: CellProps) {
  if (row === null) return <div className="code nothing" />
  if (row.sign === '@') return <div className="code gap"><span className="text">{visibleLine(row.text)}</span></div>
  const number = side === null ? row.new ?? row.old : row[side] ?? row.new
  const pieces = tokens ?? [{ text: row.text, kind: '' }]
  return (
    <div className={`code ${SIGNS[row.sign]} ${chosen ? 'chosen' : ''}`}>
      <button type="button" className="number" tabIndex={-1} aria-label={`Comment on line ${number ?? ''}`} title="Comment; Shift selects up to here" onClick={(event) => choose(row, event)}>
        {/* Drawn by the style sheet: the name of the button says one number, and copied code has none. */}
        {side === null && <span data-number={row.old ?? ''} />}<span data-number={side === null ? row.new ?? '' : number} />
      </button>
      <span className="sign" aria-label={SAID[row.sign]}>{row.sign === '-' ? '−' : row.sign}</span>
      <code className="text">{(mark ? withMark(pieces, mark) : pieces).map((token, at) => <Piece key={at} token={token} kept={row.sign === ' '} />)}</code>
    </div>
  )
}

/** How a line ends is of interest where it changes. */
function Piece({ token: { text, kind, mark }, kept }: { token: Token; kept: boolean }) {
  const shown = visibleLine(kept ? text.replace(/\r$/, '') : text)
  const classes = `${kind}${mark ? ' mark' : ''}`.trim()
  return classes ? <span className={classes}>{shown}</span> : <>{shown}</>
}


// What a terminal printed, as lines of coloured pieces. Only what cannot hide anything is taken over: the
// colour of letters, from a palette that can be read on our ground, and how they are drawn. Pure.

import { visible } from './safe_text'

/** `colour` is a place in the palette; null for the usual one. */
export interface Look { colour: number | null; bold: boolean; italic: boolean; underline: boolean; inverse: boolean }
export interface Piece extends Look { text: string }

/** On a dark ground, each at least 4.5:1: black and its bright form are greys. */
export const PALETTE = [
  '#8d97a3', '#ff8f87', '#7fd694', '#e8c268', '#82b4f7', '#d79cf2', '#6fd3d6', '#d8dee6',
  '#9aa5b2', '#ffa8a1', '#9be6ac', '#f3d78c', '#a8ccff', '#e6bcfa', '#97e6e8', '#ffffff',
] as const

const PLAIN: Look = { colour: null, bold: false, italic: false, underline: false, inverse: false }

// The same sequences that a plain tail leaves out; of these, only those that end with m say how letters look.
const SEQUENCE = /\x1b\[([ -?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\r|\n/g

/** A carriage return begins its line again, as it does on a screen. */
export function colouredLines(output: string): Piece[][] {
  const lines: Piece[][] = []
  let line: Piece[] = []
  let look = PLAIN
  let from = 0
  let returned = false
  const say = (text: string) => {
    if (text === '') return
    if (returned) line = []
    returned = false
    line.push({ ...look, text: visible(text) })
  }
  for (const found of output.matchAll(SEQUENCE)) {
    say(output.slice(from, found.index))
    from = found.index + found[0].length
    if (found[0] === '\n') {
      lines.push(line)
      line = []
      returned = false
    } else if (found[0] === '\r') returned = true
    else if (found[2] === 'm') look = after(look, found[1] ?? '')
  }
  say(output.slice(from))
  return line.length ? [...lines, line] : lines
}

function after(look: Look, codes: string): Look {
  const rest = codes.split(/[;:]/).map(Number)
  let next = look
  while (rest.length) next = step(next, rest.shift() ?? 0, rest)
  return next
}

function step(look: Look, code: number, rest: number[]): Look {
  if (code === 0) return PLAIN
  if (code === 1) return { ...look, bold: true }
  if (code === 3) return { ...look, italic: true }
  if (code === 4) return { ...look, underline: true }
  if (code === 7) return { ...look, inverse: true }
  if (code === 22) return { ...look, bold: false }
  if (code === 23) return { ...look, italic: false }
  if (code === 24) return { ...look, underline: false }
  if (code === 27) return { ...look, inverse: false }
  if (code >= 30 && code <= 37) return { ...look, colour: code - 30 }
  if (code >= 90 && code <= 97) return { ...look, colour: code - 82 }
  if (code === 39) return { ...look, colour: null }
  if (code === 38) return { ...look, colour: extended(rest) }
  if (code === 48) extended(rest)
  return look
}

/** One of 256, or red, green and blue: the nearest of ours. */
function extended(rest: number[]): number | null {
  const kind = rest.shift()
  if (kind === 2) return nearest(rest.splice(0, 3))
  const number = kind === 5 ? rest.shift() ?? 0 : 0
  if (number < 16) return number
  if (number >= 232) return number < 240 ? 0 : number < 250 ? 7 : 15
  const step = number - 16
  return nearest([Math.floor(step / 36), Math.floor(step / 6) % 6, step % 6].map((part) => part * 51))
}

function nearest(colour: number[]): number | null {
  const far = (hex: string) => [1, 3, 5].reduce((sum, at, part) => sum + (parseInt(hex.slice(at, at + 2), 16) - (colour[part] ?? 0)) ** 2, 0)
  const distances = PALETTE.map(far)
  return distances.indexOf(Math.min(...distances))
}

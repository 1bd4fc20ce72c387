// Generated from src/dragoman/session/state_limits.py and cli/render by `make gen`: do not edit.

export interface Limits {
  entry: number
  thread: number
  entries: number
  turns: number
  facts: number
  fact: number
  others: number
  programs: number
  words: number
  tail: number
  tails: number
  line: number
}

export const LIMITS: Limits = {
  entry: 4_194_304, thread: 16_777_216, entries: 10_000, turns: 2000, facts: 1_048_576,
  fact: 65_536, others: 256, programs: 200, words: 64, tail: 1_048_576, tails: 16_777_216,
  line: 1024,
}

export const NODE = 64
export const ROW = 256
export const ID = 1024
export const WORD = 64

export const EMPTY_RUN = 3
export const LONG_LINE = 2000
export const LINE_START = 1200
export const LINE_END = 600

export const OUTPUT_LINES = 8

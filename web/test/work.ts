// Work that is counted: patterns may take the square of the text that they are held against.

type Method = (this: RegExp, text: string, ...rest: unknown[]) => unknown
const METHODS = [Symbol.replace, Symbol.match, Symbol.matchAll, Symbol.split, Symbol.search, 'exec', 'test']

/** How long the longest text is that a pattern was held against. */
export function longestMatched(work: () => void): number {
  const patterns = RegExp.prototype as unknown as Record<string | symbol, Method>
  const plain = METHODS.map((method) => patterns[method] as Method)
  let longest = 0
  METHODS.forEach((method, at) => {
    patterns[method] = function (text, ...rest) {
      longest = Math.max(longest, text.length)
      return plain[at]?.call(this, text, ...rest)
    }
  })
  try {
    work()
  } finally {
    METHODS.forEach((method, at) => { patterns[method] = plain[at] as Method })
  }
  return longest
}

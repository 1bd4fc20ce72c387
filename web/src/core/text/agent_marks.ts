// An agent in place of a picture: its initials, in a colour of its own. Pure.

export interface Mark { initials: string; hue: number }

/** The same for the same name everywhere. */
export function markOf(name: string): Mark {
  return { initials: initialsOf(name), hue: hueOf(name) }
}

/** Of two words the first letters, of one its first two. */
function initialsOf(name: string): string {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? []
  const [first = '', second] = words
  if (first === '') return '?'
  const letters = second === undefined ? [...first].slice(0, 2) : [[...first][0], [...second][0]]
  return letters.join('').toUpperCase()
}

// Neighbouring names are far apart: each step is the golden angle.
const GOLDEN_ANGLE = 137.508

function hueOf(name: string): number {
  let sum = 0
  for (const letter of name.toLowerCase()) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973
  return Math.round((sum * GOLDEN_ANGLE) % 360)
}

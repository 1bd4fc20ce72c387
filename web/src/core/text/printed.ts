// What a tool printed keeps its lines. Some agents put it between fences, which are not part of it. Pure.

export interface PrintedPart { text: string; fenced: boolean }

const OPENING = /^ {0,3}(`{3,}|~{3,})/

/** The text as it is; or, if it starts with a fence, the fenced parts and those between them. */
export function printedParts(text: string): PrintedPart[] {
  const whole = text.replace(/^(?:[ \t]*\n)+/, '')
  if (!OPENING.test(whole)) return [{ text, fenced: false }]
  const parts: PrintedPart[] = []
  let lines: string[] = []
  let fence: string | null = null
  const flush = (fenced: boolean) => {
    if (lines.some((line) => line.trim())) parts.push({ text: lines.join('\n'), fenced })
    lines = []
  }
  for (const line of whole.split('\n')) {
    const opening: string | null = fence === null ? OPENING.exec(line)?.[1] ?? null : null
    if (opening !== null) flush(false)
    lines.push(line)
    const closes: boolean = opening === null && fence !== null && isFence(line.trim(), fence)
    if (closes) flush(true)
    fence = closes ? null : opening ?? fence
  }
  flush(fence !== null)
  return parts
}

function isFence(line: string, opening: string): boolean {
  return line.length >= opening.length && line === opening.charAt(0).repeat(line.length)
}

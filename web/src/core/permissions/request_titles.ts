// What an agent's title says beyond the command or the files that are shown anyway.

/** Words that only say what the card says too. */
const FILLERS = new Set([
  'a', 'the', 'run', 'runs', 'running', 'execute', 'executes', 'executing', 'exec', 'command', 'commands', 'shell', 'bash', 'sh', 'terminal', 'tool',
  'use', 'call', 'read', 'reads', 'reading', 'write', 'writes', 'writing', 'edit', 'edits', 'editing', 'create', 'file', 'files', 'to', 'in', 'from',
])

/** The title if it says more than the texts that are shown; else nothing. */
export function titleBeyond(title: string, shown: readonly string[]): string {
  const told = onOneLine(title)
  const known = shown.map(onOneLine).filter(Boolean).sort((a, b) => b.length - a.length)
  const beginning = told.replace(/(?:\.\.\.)?…?$/, '').trim()
  // Some agents put the name of the tool before it: "shell · cd src && pyt...".
  const behind = beginning === told ? '' : beginning.split(' · ').slice(1).join(' · ')
  if (known.some((text) => text.startsWith(beginning) || (behind !== '' && text.startsWith(behind)))) return ''
  const rest = known.reduce((left, text) => left.replaceAll(text, ' '), told)
  const words = rest.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  return rest === told || words.some((word) => !FILLERS.has(word)) ? title : ''
}

function onOneLine(text: string): string {
  return text.split(/\s+/).filter(Boolean).join(' ')
}

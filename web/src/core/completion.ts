// What is being completed at the caret: a slash command at the start, or a file after an @.

export interface Completing { kind: 'command' | 'file'; query: string; from: number; to: number }

export function completingAt(text: string, caret: number): Completing | null {
  const before = text.slice(0, caret)
  const command = /^\/(\S*)$/.exec(before)
  if (command) return { kind: 'command', query: command[1] ?? '', from: 0, to: caret }
  const file = /(?:^|\s)@("[^"]*|[^\s"]*)$/.exec(before)
  if (file === null) return null
  const query = (file[1] ?? '').replace(/^"/, '')
  return { kind: 'file', query, from: caret - (file[1] ?? '').length - 1, to: caret }
}

/** The text with the completion in place, and where the caret goes. */
export function completed(text: string, at: Completing, choice: string): { text: string; caret: number } {
  const word = at.kind === 'command' ? `/${choice}` : `@${/\s/.test(choice) ? `"${choice}"` : choice}`
  const gap = text[at.to] === ' ' ? '' : ' '
  return { text: text.slice(0, at.from) + word + gap + text.slice(at.to), caret: at.from + word.length + 1 }
}

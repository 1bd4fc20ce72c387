// What was typed but not sent, for each session, kept over reloads.

const KEY = 'dragoman.drafts'

function all(): Record<string, string> {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? '{}') as Record<string, string>
  } catch {
    return {}
  }
}

export function draft(session: string): string {
  return all()[session] ?? ''
}

export function keepDraft(session: string, text: string): void {
  const drafts = all()
  if (text) drafts[session] = text
  else delete drafts[session]
  sessionStorage.setItem(KEY, JSON.stringify(drafts))
}

/** Put something into a session's composer from elsewhere on the page. */
export function addToDraft(session: string, text: string): void {
  const before = draft(session)
  keepDraft(session, before ? `${before.trimEnd()}\n\n${text}` : text)
  window.dispatchEvent(new CustomEvent('draft', { detail: session }))
}

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

/** The draft, which is then no longer here. */
export function takeDraft(session: string): string {
  const text = draft(session)
  change(session, '')
  return text
}

/** Append text to a session's draft from elsewhere on the page. */
export function addToDraft(session: string, text: string): void {
  change(session, joined(draft(session), text))
}

/** Put back what could not be sent, before what was written since. */
export function giveBack(session: string, text: string): void {
  change(session, joined(text, draft(session)))
}

function joined(first: string, second: string): string {
  return first && second ? `${first.trimEnd()}\n\n${second}` : first || second
}

function change(session: string, text: string): void {
  keepDraft(session, text)
  window.dispatchEvent(new CustomEvent('draft', { detail: session }))
}

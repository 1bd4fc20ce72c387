// The bearer token comes once, in the fragment of the address, which no server and no log sees. It
// is kept in the origin's storage so that further tabs need no such address.

const KEY = 'dragoman.token'

/** Take the token out of the address bar, if there is one and it is better than what is stored. */
export async function takeToken(): Promise<void> {
  const found = /^#token=([^&]+)/.exec(location.hash)
  if (found?.[1] === undefined) return
  const told = decoded(found[1])
  const rest = location.hash.slice(found[0].length).replace(/^&to=/, '#')
  history.replaceState(null, '', location.pathname + rest)
  if (token() === '' || token() === told || (await opens(told)) || !(await opens(token()))) setToken(told)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Whether the server knows a token: anyone can write a link with a wrong one. */
async function opens(token: string): Promise<boolean> {
  return (await tried(token)) === 'known'
}

/** How the server responds to a typed token. */
export async function tried(token: string): Promise<'known' | 'unknown' | 'unreachable'> {
  const headers = { Authorization: `Bearer ${token}` }
  // Text that a header cannot carry is not a token.
  if (!/^[\x21-\x7e]+$/.test(token)) return 'unknown'
  return fetch('/api/sessions?limit=1', { headers, cache: 'no-store' }).then(
    (reply) => (reply.ok ? 'known' : reply.status === 401 || reply.status === 403 ? 'unknown' : 'unreachable'),
    () => 'unreachable',
  )
}

/** The token in what was typed: people also paste the whole address. */
export function tokenIn(typed: string): string {
  const found = /#token=([^&\s]+)/.exec(typed)
  return found?.[1] === undefined ? typed.trim() : decoded(found[1])
}

export function token(): string {
  return localStorage.getItem(KEY) ?? ''
}

export function setToken(value: string): void {
  localStorage.setItem(KEY, value.trim())
}

// The bearer token comes once, in the fragment of the address, which no server and no log sees. It
// is kept in the origin's storage so that further tabs need no such address.

const KEY = 'dragoman.token'

/** Take the token out of the address bar, if it is there. */
export function takeToken(): void {
  const found = /^#token=([^&]+)/.exec(location.hash)
  if (found?.[1] === undefined) return
  localStorage.setItem(KEY, decodeURIComponent(found[1]))
  const rest = location.hash.slice(found[0].length).replace(/^&to=/, '#')
  history.replaceState(null, '', location.pathname + rest)
}

export function token(): string {
  return localStorage.getItem(KEY) ?? ''
}

export function setToken(value: string): void {
  localStorage.setItem(KEY, value.trim())
}

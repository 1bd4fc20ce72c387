// To the clipboard, which a browser gives only to pages it trusts.

import { shell } from '../shell/shell'

export function copy(text: string, what: string): void {
  if (!window.isSecureContext) return shell.say('The browser allows clipboard access only on this machine or over HTTPS.', true)
  navigator.clipboard.writeText(text).then(() => shell.say(`${what} copied.`), (error: unknown) => shell.fail(error))
}

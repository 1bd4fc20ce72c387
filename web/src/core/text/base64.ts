// Data as it travels in JSON.

export function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text)
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
}

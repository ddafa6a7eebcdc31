// Files that the browser stores.

/** Stores data as a file. */
export function download(name: string, data: Blob) {
  const address = URL.createObjectURL(data)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

/** A name with the date: `gateway-attic-2026-11-25.age`. */
export function fileName(host: string | undefined, ending: string, now = new Date()): string {
  const day = now.toISOString().slice(0, 10)
  const safe = (host ?? '').replace(/[^a-z0-9.-]+/gi, '-').replace(/^-+|-+$/g, '')
  return ['gateway', safe, day].filter(Boolean).join('-') + ending
}

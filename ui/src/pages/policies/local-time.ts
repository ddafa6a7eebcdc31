// Times in the fields of the browser, which know no zone.

/** The local time for `datetime-local`: `2026-11-26T07:00`. */
export function toLocal(time: string | null): string {
  if (!time) return ''
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return ''
  const two = (n: number) => String(n).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`
}

export function fromLocal(written: string): string | null {
  if (!written) return null
  const date = new Date(written)
  return Number.isNaN(date.getTime()) ? null : date.toISOString().replace('.000Z', 'Z')
}

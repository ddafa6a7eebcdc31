// The addresses that the DHCP server gives out.

/** An IPv4 address as a number; `null` if it is none. */
export function numberOfAddress(address: string | null): number | null {
  const parts = address?.split('.').map(Number) ?? []
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255))
    return null
  return parts.reduce((sum, part) => sum * 256 + part, 0)
}

interface Range {
  range_start: string | null
  range_end: string | null
  exclusions: readonly string[]
}

/** Number of addresses of the range, without those that are left out; `null` without a range. */
export function sizeOf({ range_start, range_end, exclusions }: Range): number | null {
  const first = numberOfAddress(range_start)
  const last = numberOfAddress(range_end)
  if (first === null || last === null || last < first) return null
  const left = new Set<number>()
  for (const exclusion of exclusions) {
    const [from, to] = exclusion.split('-').map((each) => numberOfAddress(each.trim()))
    if (from === null || from === undefined) continue
    for (let at = Math.max(first, from); at <= Math.min(last, to ?? from); at += 1) left.add(at)
  }
  return last - first + 1 - left.size
}

/** Number of the leases that take an address of the range. */
export function takenOf({ range_start, range_end }: Range, addresses: readonly string[]): number {
  const first = numberOfAddress(range_start) ?? Infinity
  const last = numberOfAddress(range_end) ?? -Infinity
  return new Set(
    addresses.filter((address) => {
      const at = numberOfAddress(address)
      return at !== null && at >= first && at <= last
    }),
  ).size
}

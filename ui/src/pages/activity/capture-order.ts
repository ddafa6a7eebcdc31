// What a capture is asked for: the fields of its form, and the order that follows.

import type { Schemas } from '@/api/client'

export type CaptureFields = {
  /** Its packets only; empty for all. */
  device: string
  interface: string
  preset: string
  filter: string
  seconds: string
  count: string
  snaplen: string
  promiscuous: boolean
}

/** Bytes of a packet that hold its headers, and those of a whole one. */
export const SNAPLENS = ['262144', '96'] as const
export const DURATIONS = ['60', '300', '900', '3600'] as const

export const blank: CaptureFields = {
  device: '',
  interface: 'lan',
  preset: '',
  filter: '',
  seconds: '300',
  count: '50000',
  snaplen: '262144',
  promiscuous: false,
}

type Addresses = Pick<Schemas['Device'], 'mac' | 'macs' | 'ips'>

/** The filter of the packets of a device: by its MAC addresses where frames have some, else by its IP addresses. Null if none is known. */
export function filterOf({ mac, macs, ips }: Addresses, hasFrames: boolean): string | null {
  const hosts = hasFrames
    ? [mac, ...macs].filter((each) => each !== null).map((each) => `ether host ${each}`)
    : []
  const found = hosts.length > 0 ? hosts : (ips ?? []).map((each) => `host ${each}`)
  return found.length > 0 ? found.join(' or ') : null
}

/** The order of a capture. `ofDevice` is the filter of its device. */
export function orderOf(fields: CaptureFields, ofDevice: string | null): Schemas['CaptureRequestInput'] {
  const filters = [ofDevice, fields.filter.trim()].filter((each) => each !== null && each !== '')
  return {
    interface: fields.interface,
    preset: fields.preset === '' ? null : (fields.preset as Schemas['CapturePresetNameInput']),
    filter: filters.length > 1 ? filters.map((each) => `(${each})`).join(' and ') : (filters[0] ?? ''),
    duration_sec: Number(fields.seconds),
    count: Number(fields.count),
    snaplen: Number(fields.snaplen),
    promiscuous: fields.promiscuous,
  }
}

// The packet that is asked about.

import { useState } from 'react'
import type { Search } from '@/session/search-params'
import { Button } from '@/components/button'
import { FilterBox, FilterSelect } from '@/components/filter-fields'
import { RemovableFilter } from '@/components/removable-filter'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import type { PacketQuery } from './query'

interface Props {
  packet: PacketQuery
  onAsk: (change: Search) => void
  /** Time of the answer in milliseconds. */
  at: number
}

const PROTOCOLS = [
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['icmp', 'ICMP'],
] as const
const FAMILIES = [
  ['ipv4', 'IPv4'],
  ['ipv6', 'IPv6'],
] as const

export function PacketForm({ packet, onAsk, at }: Props) {
  const text = useText()
  const [destination, setDestination] = useState(packet.destination ?? '')
  const [port, setPort] = useState(packet.port === undefined ? '' : String(packet.port))
  const ask = (change: Search) =>
    onAsk({ domain: undefined, to: destination.trim() || undefined, port: port || undefined, ...change })
  return (
    <form
      className="filters"
      aria-label={text.why.askAbout}
      onSubmit={(event) => {
        event.preventDefault()
        ask({})
      }}
    >
      <span className="dim">{text.why.askAbout}</span>
      <FilterBox
        label={text.why.destination}
        icon="globe"
        isFilter={false}
        value={destination}
        placeholder={text.why.anyDestination}
        onChange={(typed) => setDestination(typed ?? '')}
      />
      <PortField value={port} onChange={setPort} />
      <FilterSelect
        label={text.why.protocol}
        any={text.why.anyProtocol}
        options={PROTOCOLS}
        value={packet.protocol}
        onChange={(protocol) => ask({ protocol })}
      />
      <FilterSelect
        label={text.why.family}
        any={text.why.bothFamilies}
        options={FAMILIES}
        value={packet.family}
        onChange={(family) => ask({ family })}
      />
      {packet.at ? (
        <RemovableFilter
          label={text.why.at}
          value={formatTime(packet.at, 'long')}
          onRemove={() => ask({ at: undefined })}
        />
      ) : null}
      <Button submit>{text.why.ask}</Button>
      {at > 0 ? (
        <span className="dim sm nowrap">
          {text.why.answeredAt(formatTime(new Date(at).toISOString(), 'seconds'))}
        </span>
      ) : null}
    </form>
  )
}

function PortField({ value, onChange }: { value: string; onChange: (port: string) => void }) {
  const { why } = useText()
  return (
    <label>
      <span className="sr">{why.port}</span>
      <input
        className="field field--port"
        inputMode="numeric"
        value={value}
        placeholder={why.port}
        onChange={(event) => onChange(event.target.value.replace(/\D/g, ''))}
      />
    </label>
  )
}

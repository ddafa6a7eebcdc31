// The packet that is asked about.

import { useState } from 'react'
import type { Search } from '@/session/search-params'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import type { PacketQuery } from './query'

interface Props {
  packet: PacketQuery
  onAsk: (change: Search) => void
  /** Time of the answer in milliseconds. */
  at: number
}

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
      <label className="search">
        <Icon name="globe" />
        <span className="sr">{text.why.destination}</span>
        <input
          className="field"
          value={destination}
          placeholder={text.why.anyDestination}
          onChange={(event) => setDestination(event.target.value)}
        />
      </label>
      <label>
        <span className="sr">{text.why.port}</span>
        <input
          className="field field--port"
          inputMode="numeric"
          value={port}
          placeholder={text.why.port}
          onChange={(event) => setPort(event.target.value.replace(/\D/g, ''))}
        />
      </label>
      <label>
        <span className="sr">{text.why.protocol}</span>
        <select
          className="field"
          value={packet.protocol ?? ''}
          onChange={(event) => ask({ protocol: event.target.value || undefined })}
        >
          <option value="">{text.why.anyProtocol}</option>
          <option value="tcp">TCP</option>
          <option value="udp">UDP</option>
          <option value="icmp">ICMP</option>
        </select>
      </label>
      <label>
        <span className="sr">{text.why.family}</span>
        <select
          className="field"
          value={packet.family ?? ''}
          onChange={(event) => ask({ family: event.target.value || undefined })}
        >
          <option value="">{text.why.bothFamilies}</option>
          <option value="ipv4">IPv4</option>
          <option value="ipv6">IPv6</option>
        </select>
      </label>
      <Button submit>{text.why.ask}</Button>
      {at > 0 ? (
        <span className="dim sm nowrap">
          {text.why.answeredAt(formatTime(new Date(at).toISOString(), 'seconds'))}
        </span>
      ) : null}
    </form>
  )
}

// What holds for all pools: the unit of splitting, DNS, and cover traffic.

import { useGet } from '@/api/query'
import { Facts } from '@/components/facts'
import { LoadedSection } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'

export function TransportFacts() {
  const text = useText()
  const words = text.paths.splitting
  const names = words.transportFacts
  const transport = useGet('/splitting/transport')
  return (
    <LoadedSection title={words.transport} query={transport}>
      {(read) => (
        <Facts
          facts={[
            [names.mode, words.modes[read.mode] ?? read.mode],
            [names.protocols, read.protocols.join(', ')],
            [names.quic, words.quics[read.quic] ?? read.quic],
            [names.mtu, read.mtu_min === null ? null : `${read.mtu_min} B`],
            [names.mss, read.mss_clamp ? text.common.yes : text.common.no],
            [names.drain, text.common.seconds(read.drain_sec)],
          ]}
        />
      )}
    </LoadedSection>
  )
}

export function DnsOfPools() {
  const text = useText()
  const words = text.paths.splitting
  const columns = words.dnsColumns
  const dns = useGet('/splitting/dns/status')
  const mode = dns.data?.data.mode
  return (
    <LoadedSection
      title={words.dns}
      hint={mode === undefined ? null : (words.dnsModes[mode] ?? mode)}
      query={dns}
      isEmpty={(read) => read.per_endpoint.length === 0}
      empty={<p className="quiet">{words.dnsEmpty}</p>}
    >
      {(read) => (
        <Table
          rows={read.per_endpoint}
          id={(each) => each.tunnel}
          columns={[
            { head: columns.tunnel, bare: true, className: 'med', cell: (each) => each.tunnel },
            { head: columns.upstreams, cell: (each) => each.upstreams.join(', ') || '-' },
            { head: columns.queries, numeric: true, cell: (each) => formatNumber(each.queries) },
            { head: columns.failures, numeric: true, cell: (each) => formatNumber(each.failures) },
          ]}
        />
      )}
    </LoadedSection>
  )
}

const COVER: Record<string, State> = { active: 'ok', waiting: 'idle', off: 'idle', not_supported: 'idle' }

export function Cover() {
  const text = useText()
  const words = text.paths.splitting
  const columns = words.coverColumns
  const cover = useGet('/splitting/cover/stats')
  const percent = (value: number | null) => (value === null ? '-' : `${formatNumber(value, 1)} %`)
  return (
    <LoadedSection title={words.cover} hint={words.coverHint} query={cover}>
      {(read) => (
        <>
          <p className="mid">
            {read.enabled ? words.coverOn(percent(read.overhead_pct), read.budget_pct) : words.coverOff}
          </p>
          {read.per_tunnel.length > 0 ? (
            <Table
              rows={read.per_tunnel}
              id={(each) => each.id}
              columns={[
                { head: columns.tunnel, bare: true, className: 'med', cell: (each) => each.tunnel },
                {
                  head: columns.state,
                  cell: (each) => (
                    <TwoLines second={each.note}>
                      <StateWord state={COVER[each.state] ?? 'unknown'}>
                        {words.coverStates[each.state]}
                      </StateWord>
                    </TwoLines>
                  ),
                },
                { head: columns.padding, numeric: true, cell: (each) => formatBytes(each.padding_bytes) },
                { head: columns.normal, numeric: true, cell: (each) => formatBytes(each.normal_bytes) },
                { head: columns.overhead, numeric: true, cell: (each) => percent(each.overhead_pct) },
              ]}
            />
          ) : null}
        </>
      )}
    </LoadedSection>
  )
}

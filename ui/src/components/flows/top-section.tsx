// Totals of flows by one property, those with the most bytes first.

import type { ReactNode } from 'react'
import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { LoadedSection } from '@/components/section'
import { Table } from '@/components/table'
import { Link } from '@/session/link'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import type { FlowGroup } from './usage'
import { useSpan } from './usage-section'

interface Props {
  by: FlowGroup
  device?: string
  title: string
  actions?: ReactNode
}

const MOST = 10
/** Filter of the flows that a row is about, if there is one. */
const FILTERS = {
  device: 'device',
  domain: 'domain',
  policy: 'policy',
  egress: 'egress',
  country: 'country',
} as const

export function TopSection({ by, device, title, actions }: Props) {
  const text = useText()
  const { top: words, usage, deleted } = text.flows
  const { since } = useSpan()
  const filter = FILTERS[by]
  const query = useGet('/flows/top', { query: { by, device, since, limit: MOST } }, { every: 60_000 })
  const nameOf = ({ id, name }: Schemas['FlowTotal']) =>
    name === 'auto' && by === 'egress'
      ? text.dns.log.defaultRoute
      : (name ?? (id ? deleted : usage.without[by]))
  const valueOf = ({ id, name }: Schemas['FlowTotal']) => id ?? (by === 'domain' && name ? `=${name}` : name)
  return (
    <LoadedSection
      title={title}
      hint={words.hint}
      actions={actions}
      query={query}
      lines={6}
      isEmpty={({ totals }) => totals.length === 0}
      empty={<p className="quiet">{usage.none}</p>}
    >
      {({ totals, complete }) => (
        <Table
          label={title}
          rows={totals}
          id={(row) => row.id ?? row.name ?? ''}
          dense
          caption={complete ? undefined : words.partial}
          columns={[
            {
              head: usage.groups[by],
              className: 'wrap',
              bare: true,
              cell: (row) =>
                filter && valueOf(row) ? (
                  <Link to="/activity/flows" search={{ [filter]: valueOf(row), device, since }}>
                    {nameOf(row)}
                  </Link>
                ) : (
                  nameOf(row)
                ),
            },
            { head: words.flows, numeric: true, cell: (row) => formatNumber(row.flows) },
            { head: words.denied, numeric: true, cell: (row) => formatNumber(row.denied) },
            { head: words.sent, numeric: true, cell: (row) => formatBytes(row.sent.bytes) },
            { head: words.received, numeric: true, cell: (row) => formatBytes(row.received.bytes) },
          ]}
        />
      )}
    </LoadedSection>
  )
}

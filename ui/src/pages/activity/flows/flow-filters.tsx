// The filters of the flows: a name or an address, and choices of what the gateway has.

import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { FilterSelect, TypedFilter } from '@/components/filter-fields'
import { RemovableFilter } from '@/components/removable-filter'
import type { Search } from '@/session/search-params'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { FILTERS, typedFilter } from './flow-list'

interface Props {
  search: Search
  change: (change: Search) => void
}

const PROTOCOLS = ['tcp', 'udp', 'icmp', 'icmpv6'].map((each) => [each, each.toUpperCase()] as const)
const OWN = ['client', 'country', 'port', 'since', 'until'] as const

export function FlowFilters({ search, change }: Props) {
  const text = useText()
  const words = text.flows
  const options = useOptions()
  const set = (filters: Search) => change({ ...filters, before: undefined, open: undefined })
  const choice = (name: keyof typeof options) => (
    <FilterSelect
      key={name}
      label={words.filters[name]}
      any={words.any[name]}
      options={options[name]}
      value={search[name]}
      onChange={(value) => set({ [name]: value })}
    />
  )
  return (
    <div className="filters" role="search">
      <TypedFilter
        label={words.filters.destination}
        placeholder={words.destinationHint}
        value={search.destination ?? search.domain ?? ''}
        onChange={(typed) => set(typedFilter(typed || undefined))}
      />
      {(['device', 'policy', 'egress', 'verdict', 'protocol', 'state'] as const).map(choice)}
      {OWN.map((name) => {
        const value = search[name]
        const isTime = name === 'since' || name === 'until'
        return value ? (
          <RemovableFilter
            key={name}
            label={words.filters[name]}
            value={isTime ? formatTime(value) : value}
            onRemove={() => set({ [name]: undefined })}
          />
        ) : null
      })}
      {FILTERS.some((name) => search[name]) ? (
        <Button
          kind="ghost"
          size="small"
          onClick={() => set(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
        >
          {text.dns.log.clear}
        </Button>
      ) : null}
    </div>
  )
}

function useOptions() {
  const text = useText()
  const once = { every: 60_000 }
  const devices = useGet('/devices', {}, once).data?.data ?? []
  const policies = useGet('/routing/policies', {}, once).data?.data ?? []
  const tunnels = useGet('/tunnels', {}, once).data?.data ?? []
  const proxies = useGet('/proxies', {}, once).data?.data ?? []
  const named = (list: readonly { id: string; name: string }[]) =>
    list.map(({ id, name }) => [id, name] as const)
  return {
    device: named(devices),
    policy: named(policies),
    egress: [
      ['auto', text.dns.log.defaultRoute] as const,
      ...[...tunnels, ...proxies].map(({ name }) => [name, name] as const),
    ],
    verdict: Object.entries(text.flows.verdicts),
    protocol: PROTOCOLS,
    state: Object.entries(text.flows.states),
  }
}

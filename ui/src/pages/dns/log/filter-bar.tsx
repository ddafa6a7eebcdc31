// The filters of the query log: those that are set, and those that can be.

import { useRef, useState } from 'react'
import { useGet } from '@/api/query'
import type { Search } from '@/session/search-params'
import { Button } from '@/components/button'
import { TypedFilter } from '@/components/filter-fields'
import { RemovableFilter, RemoveButton } from '@/components/removable-filter'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { useListNames } from '../names'
import { TimeChoice, Values, type Shown } from './filter-values'
import { NAMES, type Entry, type Filters } from './filters'

interface Props {
  filters: Filters
  change: (change: Search) => void
  setRange: (from: string | undefined, to: string | undefined) => void
  entries: readonly Entry[]
}

const NOT = ['not_domain', 'not_client', 'not_status', 'not_type'] as const
const SHOWN: Shown[] = ['time', 'client', 'status', 'list', 'type', 'upstream', 'egress', 'cached', 'slower']

export function FilterBar({ filters, change, setRange, entries }: Props) {
  const text = useText()
  const { log } = text.dns
  const [editing, setEditing] = useState<Shown | null>(null)
  const bar = useRef<HTMLDivElement>(null)
  const shownValue = useShownValue()
  const labelOf = (name: Shown) => (name === 'time' ? log.time : log.filters[name])
  const valueOf = (name: Shown): string | undefined => {
    if (name !== 'time') return filters[name] === undefined ? undefined : shownValue(name, filters[name])
    const { from, to } = filters
    if (from === undefined && to === undefined) return undefined
    return log.range(from ? formatTime(from) : null, to ? formatTime(to) : null)
  }
  /** Closes the choice; the button of the filter has the focus again. */
  const back = (name: Shown) => {
    setEditing(null)
    requestAnimationFrame(() => bar.current?.querySelector<HTMLElement>(`[data-name="${name}"]`)?.focus())
  }
  const remove = (name: Shown) => {
    if (name === 'time') setRange(undefined, undefined)
    else change({ [name]: undefined, open: undefined })
    back(name)
  }
  return (
    <>
      <div ref={bar} className="filters" role="search">
        <TypedFilter
          label={log.domain}
          placeholder={log.domainHint}
          value={filters.domain ?? ''}
          onChange={(typed) => change(domainChange(typed))}
        />
        {SHOWN.map((name) => (
          <FilterButton
            key={name}
            name={name}
            label={labelOf(name)}
            value={valueOf(name)}
            open={editing === name}
            onToggle={() => setEditing(editing === name ? null : name)}
            onRemove={() => remove(name)}
          />
        ))}
        <LeftOut filters={filters} change={change} />
        {NAMES.some((name) => filters[name] !== undefined) ? (
          <Button
            kind="ghost"
            size="small"
            onClick={() => {
              change(Object.fromEntries([...NAMES, 'open'].map((name) => [name, undefined])))
              setEditing(null)
            }}
          >
            {log.clear}
          </Button>
        ) : null}
      </div>
      {editing === 'time' ? (
        <TimeChoice
          filters={filters}
          setRange={(from, to) => {
            setRange(from, to)
            back('time')
          }}
        />
      ) : editing ? (
        <Values
          key={editing}
          name={editing}
          value={filters[editing]}
          entries={entries}
          onChoose={(value, not) => {
            change({ [not ? `not_${editing}` : editing]: value, open: undefined })
            back(editing)
          }}
        />
      ) : null}
    </>
  )
}

/** The values that are left out. */
function LeftOut({ filters, change }: Pick<Props, 'filters' | 'change'>) {
  const { log } = useText().dns
  const shownValue = useShownValue()
  return NOT.map((name) => {
    const value = filters[name]
    if (value === undefined) return null
    const label = log.not(log.filters[name.slice(4) as 'client'])
    return (
      <RemovableFilter
        key={name}
        label={label}
        value={shownValue(name.slice(4), value)}
        onRemove={() => change({ [name]: undefined, open: undefined })}
      />
    )
  })
}

/** Domains that begin with `!` are left out. */
function domainChange(typed: string): Search {
  if (!typed.startsWith('!')) return { domain: typed, open: undefined }
  return { not_domain: typed.slice(1).trim() || undefined, domain: undefined, open: undefined }
}

/** Returns a function that says the value of a filter in words. */
function useShownValue(): (name: string, value: string) => string {
  const text = useText()
  const { log } = text.dns
  const clients = useGet('/dns/clients', {}, { every: 60_000 }).data?.data ?? []
  const names = useListNames()
  return (name, value) => {
    if (name === 'client') {
      const client = clients.find((each) => (each.client.device_id ?? each.client.ip) === value)?.client
      return client?.name ?? client?.ip ?? value
    }
    if (name === 'status') return log.statuses[value] ?? value
    if (name === 'list') return names.get(value) ?? value
    if (name === 'egress' && value === 'auto') return log.defaultRoute
    if (name === 'cached') return value === 'yes' ? text.common.yes : text.common.no
    if (name === 'slower') return `${value} ms`
    return value
  }
}

interface FilterProps {
  name: Shown
  label: string
  /** Undefined while the filter is not set. */
  value: string | undefined
  open: boolean
  onToggle: () => void
  onRemove: () => void
}

function FilterButton({ name, label, value, open, onToggle, onRemove }: FilterProps) {
  const button = { type: 'button', 'data-name': name, 'aria-expanded': open, onClick: onToggle } as const
  if (value === undefined)
    return (
      <button {...button} className="flt">
        {label}
      </button>
    )
  return (
    <span className="flt flt--on">
      <button {...button} className="flt__edit">
        {label} <b title={value}>{value}</b>
      </button>
      <RemoveButton label={label} onRemove={onRemove} />
    </span>
  )
}

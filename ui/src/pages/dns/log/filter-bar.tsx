// The filters of the query log: those that are set, and those that can be.

import { useId, useState, type ReactNode } from 'react'
import { useGet } from '@/api/query'
import type { Search } from '@/app/search-params'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import type { Names } from '../names'
import { NAMES, REASONS, STATUSES, type Entry, type Filters, type Name } from './filters'

interface Props {
  filters: Filters
  change: (change: Search) => void
  setRange: (from: string | undefined, to: string | undefined) => void
  entries: readonly Entry[]
  names: Names
}

type Shown = Exclude<Name, 'domain' | 'from' | 'to'> | 'time'
const SHOWN: Shown[] = ['time', 'client', 'status', 'reason', 'list', 'type', 'upstream', 'cached', 'slower']

export function FilterBar({ filters, change, setRange, entries, names }: Props) {
  const text = useText()
  const { log } = text.dns
  const [editing, setEditing] = useState<Shown | null>(null)
  const clients = useGet('/dns/clients').data?.data ?? []
  const clientName = (id: string) => {
    const client = clients.find((each) => (each.client.device_id ?? each.client.ip) === id)?.client
    return client?.name ?? client?.ip ?? id
  }
  const isSet = (name: Shown) =>
    name === 'time' ? filters.from !== undefined || filters.to !== undefined : filters[name] !== undefined
  const valueOf = (name: Shown): string => {
    if (name === 'time')
      return log.range(
        filters.from ? formatTime(filters.from) : null,
        filters.to ? formatTime(filters.to) : null,
      )
    const value = filters[name] ?? ''
    if (name === 'client') return clientName(value)
    if (name === 'status') return log.statuses[value] ?? value
    if (name === 'reason') return log.reasons[value] ?? value
    if (name === 'list') return names.get(value) ?? value
    if (name === 'cached') return value === 'yes' ? text.common.yes : text.common.no
    if (name === 'slower') return `${value} ms`
    return value
  }
  const remove = (name: Shown) => {
    if (name === 'time') setRange(undefined, undefined)
    else change({ [name]: undefined, open: undefined })
  }
  const choices = (name: Shown): [string, string][] => {
    const distinct = (values: (string | null)[]) =>
      [...new Set(values.filter((each) => each !== null))].sort()
    if (name === 'client')
      return clients.map(({ client }) => [client.device_id ?? client.ip, client.name ?? client.ip])
    if (name === 'status') return STATUSES.map((each) => [each, log.statuses[each] ?? each])
    if (name === 'reason') return REASONS.map((each) => [each, log.reasons[each] ?? each])
    if (name === 'list')
      return distinct(entries.map((each) => each.list_id)).map((each) => [each, names.get(each) ?? each])
    if (name === 'type')
      return distinct(entries.map((each) => each.question.type)).map((each) => [each, each])
    if (name === 'upstream') return distinct(entries.map((each) => each.upstream)).map((each) => [each, each])
    if (name === 'cached')
      return [
        ['yes', text.common.yes],
        ['no', text.common.no],
      ]
    return ['10', '50', '100', '500', '1000'].map((each) => [each, `${each} ms`])
  }
  return (
    <>
      <div className="filters" role="search">
        <DomainField
          value={filters.domain ?? ''}
          onChange={(domain) => change({ domain, open: undefined })}
        />
        {SHOWN.map((name) =>
          isSet(name) ? (
            <span key={name} className="flt flt--on">
              <button
                type="button"
                className="flt__edit"
                onClick={() => setEditing(editing === name ? null : name)}
              >
                {name === 'time' ? log.time : log.filters[name]} <b>{valueOf(name)}</b>
              </button>
              <button
                type="button"
                className="x"
                aria-label={log.removeFilter(name === 'time' ? log.time : log.filters[name])}
                onClick={() => remove(name)}
              >
                <Icon name="x" />
              </button>
            </span>
          ) : (
            <button
              key={name}
              type="button"
              className="flt"
              aria-expanded={editing === name}
              onClick={() => setEditing(editing === name ? null : name)}
            >
              {name === 'time' ? log.time : log.filters[name]}
            </button>
          ),
        )}
        {NAMES.some((name) => filters[name] !== undefined) ? (
          <Button
            kind="ghost"
            size="small"
            onClick={() => {
              setRange(undefined, undefined)
              change(Object.fromEntries([...NAMES, 'open'].map((name) => [name, undefined])))
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
            setEditing(null)
          }}
        />
      ) : editing ? (
        <Chooser label={log.filters[editing]}>
          {choices(editing).map(([value, name]) => (
            <button
              key={value}
              type="button"
              className="btn btn--s"
              aria-pressed={filters[editing] === value}
              onClick={() => {
                change({ [editing]: value, open: undefined })
                setEditing(null)
              }}
            >
              {name}
            </button>
          ))}
          {choices(editing).length === 0 ? <span className="dim">{text.common.noData}</span> : null}
        </Chooser>
      ) : null}
    </>
  )
}

function Chooser({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className="filters filters--choice" role="group" aria-label={label}>
      <span className="dim sm">{label}</span>
      {children}
    </div>
  )
}

function DomainField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const text = useText()
  const id = useId()
  const [typed, setTyped] = useState(value)
  const [known, setKnown] = useState(value)
  // The address changed by something else than this field.
  if (value !== known) {
    setKnown(value)
    setTyped(value)
  }
  return (
    <form
      className="search"
      onSubmit={(event) => {
        event.preventDefault()
        onChange(typed.trim())
      }}
    >
      <Icon name="search" />
      <label className="sr" htmlFor={id}>
        {text.dns.log.domain}
      </label>
      <input
        id={id}
        className="field"
        type="search"
        placeholder={text.dns.log.domainHint}
        value={typed}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => {
          setTyped(event.target.value)
          if (event.target.value === '') onChange('')
        }}
        onBlur={() => {
          if (typed.trim() !== value) onChange(typed.trim())
        }}
      />
    </form>
  )
}

const QUICK = [5, 15, 60, 360, 1440]

function TimeChoice({
  filters,
  setRange,
}: {
  filters: Filters
  setRange: (from: string | undefined, to: string | undefined) => void
}) {
  const text = useText()
  const { log } = text.dns
  const [from, setFrom] = useState(toLocal(filters.from))
  const [to, setTo] = useState(toLocal(filters.to))
  const ids = useId()
  return (
    <Chooser label={log.time}>
      {QUICK.map((minutes) => (
        <button
          key={minutes}
          type="button"
          className="btn btn--s"
          onClick={() => setRange(new Date(Date.now() - minutes * 60_000).toISOString(), undefined)}
        >
          {log.last(minutes)}
        </button>
      ))}
      <form
        className="filters"
        onSubmit={(event) => {
          event.preventDefault()
          setRange(toInstant(from), toInstant(to))
        }}
      >
        <label className="dim sm" htmlFor={`${ids}-from`}>
          {log.from}
        </label>
        <input
          id={`${ids}-from`}
          className="field"
          type="datetime-local"
          step="1"
          value={from}
          onChange={(event) => setFrom(event.target.value)}
        />
        <label className="dim sm" htmlFor={`${ids}-to`}>
          {log.to}
        </label>
        <input
          id={`${ids}-to`}
          className="field"
          type="datetime-local"
          step="1"
          value={to}
          onChange={(event) => setTo(event.target.value)}
        />
        <Button size="small" submit>
          {log.set}
        </Button>
      </form>
    </Chooser>
  )
}

function toLocal(time: string | undefined): string {
  if (time === undefined || Number.isNaN(Date.parse(time))) return ''
  const date = new Date(time)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

function toInstant(local: string): string | undefined {
  const date = new Date(local)
  return local === '' || Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

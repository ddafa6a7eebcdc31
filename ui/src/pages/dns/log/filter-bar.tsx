// The filters of the query log: those that are set, and those that can be.

import { useId, useRef, useState, type ReactNode } from 'react'
import { useGet } from '@/api/query'
import type { Search } from '@/session/search-params'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { useListNames } from '../names'
import { isNegatable, NAMES, STATUSES, TYPES, type Entry, type Filters, type Name } from './filters'

interface Props {
  filters: Filters
  change: (change: Search) => void
  setRange: (from: string | undefined, to: string | undefined) => void
  entries: readonly Entry[]
}

type Not = 'not_domain' | 'not_client' | 'not_status' | 'not_type'
type Shown = Exclude<Name, 'domain' | 'from' | 'to' | Not> | 'time'
const NOT: Not[] = ['not_domain', 'not_client', 'not_status', 'not_type']
const SHOWN: Shown[] = ['time', 'client', 'status', 'list', 'type', 'upstream', 'egress', 'cached', 'slower']

export function FilterBar({ filters, change, setRange, entries }: Props) {
  const text = useText()
  const { log } = text.dns
  const [editing, setEditing] = useState<Shown | null>(null)
  const bar = useRef<HTMLDivElement>(null)
  const clients = useGet('/dns/clients', {}, { every: 60_000 }).data?.data ?? []
  const names = useListNames()
  const labelOf = (name: Shown) => (name === 'time' ? log.time : log.filters[name])
  const isSet = (name: Shown) =>
    name === 'time' ? filters.from !== undefined || filters.to !== undefined : filters[name] !== undefined
  const valueOf = (name: Shown): string => {
    if (name === 'time')
      return log.range(
        filters.from ? formatTime(filters.from) : null,
        filters.to ? formatTime(filters.to) : null,
      )
    return shownValue(name, filters[name] ?? '')
  }
  const shownValue = (name: string, value: string): string => {
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
  const set = (name: Exclude<Shown, 'time'>, value: string) => {
    change({ [name]: value, open: undefined })
    setEditing(null)
    back(name)
  }
  const remove = (name: Shown) => {
    if (name === 'time') setRange(undefined, undefined)
    else change({ [name]: undefined, open: undefined })
    setEditing(null)
    back(name)
  }
  const back = (name: Shown) =>
    requestAnimationFrame(() => bar.current?.querySelector<HTMLElement>(`[data-name="${name}"]`)?.focus())
  const toggle = (name: Shown) => setEditing(editing === name ? null : name)
  return (
    <>
      <div ref={bar} className="filters" role="search">
        <DomainField
          value={filters.domain ?? ''}
          onChange={(domain) =>
            domain.startsWith('!')
              ? change({
                  not_domain: domain.slice(1).trim() || undefined,
                  domain: undefined,
                  open: undefined,
                })
              : change({ domain, open: undefined })
          }
        />
        {SHOWN.map((name) =>
          isSet(name) ? (
            <span key={name} className="flt flt--on">
              <button
                type="button"
                className="flt__edit"
                data-name={name}
                aria-expanded={editing === name}
                onClick={() => toggle(name)}
              >
                {labelOf(name)} <b title={valueOf(name)}>{valueOf(name)}</b>
              </button>
              <button
                type="button"
                className="x"
                aria-label={log.removeFilter(labelOf(name))}
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
              data-name={name}
              aria-expanded={editing === name}
              onClick={() => toggle(name)}
            >
              {labelOf(name)}
            </button>
          ),
        )}
        {NOT.filter((name) => filters[name] !== undefined).map((name) => {
          const label = log.not(log.filters[name.slice(4) as 'client'])
          return (
            <span key={name} className="flt flt--on">
              {label} <b>{shownValue(name.slice(4), filters[name] ?? '')}</b>
              <button
                type="button"
                className="x"
                aria-label={log.removeFilter(label)}
                onClick={() => change({ [name]: undefined, open: undefined })}
              >
                <Icon name="x" />
              </button>
            </span>
          )
        })}
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
            setEditing(null)
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
            if (!not) return set(editing, value)
            change({ [`not_${editing}`]: value, open: undefined })
            setEditing(null)
            back(editing)
          }}
        />
      ) : null}
    </>
  )
}

type Choice = [value: string, name: string]

/** Values that have a button each; the others are in a list. */
const BUTTONS = 12
/** Filters that take other values than those offered. */
const FREE: readonly Shown[] = ['client', 'type', 'upstream', 'slower']

interface ValuesProps {
  name: Exclude<Shown, 'time'>
  value: string | undefined
  entries: readonly Entry[]
  onChoose: (value: string, not: boolean) => void
}

/** The values that a filter can have: what the gateway knows, those of the loaded entries first. */
function Values({ name, value, entries, onChoose }: ValuesProps) {
  const text = useText()
  const { log } = text.dns
  const id = useId()
  const [typed, setTyped] = useState('')
  const [not, setNot] = useState(false)
  const choices = useChoices(name, entries)
  const inList = choices.slice(BUTTONS)
  return (
    <Chooser label={log.filters[name]}>
      {isNegatable(name) ? (
        <label className="check">
          <input type="checkbox" checked={not} onChange={(event) => setNot(event.target.checked)} />
          {log.except}
        </label>
      ) : null}
      {choices.slice(0, BUTTONS).map(([each, label]) => (
        <button
          key={each}
          type="button"
          className="btn btn--s"
          aria-pressed={value === each}
          onClick={() => onChoose(each, not)}
        >
          {label}
        </button>
      ))}
      {inList.length > 0 ? (
        <select
          className="field field--s"
          aria-label={log.filters[name]}
          value={inList.some(([each]) => each === value) ? value : ''}
          onChange={(event) => onChoose(event.target.value, not)}
        >
          <option value="" disabled>
            {log.others(inList.length)}
          </option>
          {inList.map(([each, label]) => (
            <option key={each} value={each}>
              {label}
            </option>
          ))}
        </select>
      ) : null}
      {choices.length === 0 && !FREE.includes(name) ? (
        <span className="dim">{text.common.noData}</span>
      ) : null}
      {FREE.includes(name) ? (
        <form
          className="filters"
          onSubmit={(event) => {
            event.preventDefault()
            if (typed.trim() !== '') onChoose(typed.trim(), not)
          }}
        >
          <label className="sr" htmlFor={id}>
            {log.filters[name]}
          </label>
          <input
            id={id}
            className="field field--s"
            type={name === 'slower' ? 'number' : 'text'}
            min={0}
            placeholder={log.valueHints[name]}
            value={typed}
            spellCheck={false}
            autoCapitalize="none"
            onChange={(event) => setTyped(event.target.value)}
          />
          <Button size="small" submit>
            {log.set}
          </Button>
        </form>
      ) : null}
    </Chooser>
  )
}

function useChoices(name: Exclude<Shown, 'time'>, entries: readonly Entry[]): Choice[] {
  const text = useText()
  const { log } = text.dns
  const names = useListNames()
  const clients = useGet('/dns/clients', {}, { every: 60_000 }).data?.data ?? []
  const upstreams = useGet('/dns/status').data?.data.upstreams ?? []
  const tunnels = useGet('/tunnels', {}, { every: 60_000 }).data?.data ?? []
  const distinct = (values: (string | null | undefined)[]) => [
    ...new Set(values.filter((each): each is string => typeof each === 'string' && each !== '')),
  ]
  const plain = (values: string[]): Choice[] => values.map((each) => [each, each])
  if (name === 'client')
    return clients.map(({ client }) => [client.device_id ?? client.ip, client.name ?? client.ip])
  if (name === 'status') return STATUSES.map((each) => [each, log.statuses[each] ?? each])
  if (name === 'list') {
    const loaded = distinct(entries.map((each) => each.list_id))
    const ids = distinct([...loaded, ...names.keys()])
    const named = new Map(entries.map((each) => [each.list_id, each.list?.name]))
    return ids.map((id) => [id, names.get(id) ?? named.get(id) ?? id])
  }
  if (name === 'type') return plain(distinct([...TYPES, ...entries.map((each) => each.question.type)]))
  if (name === 'upstream')
    return plain(
      distinct([...upstreams.map((each) => each.address), ...entries.map((each) => each.upstream)]),
    )
  if (name === 'egress')
    return distinct(['auto', ...tunnels.map((each) => each.name), ...entries.map((each) => each.egress)]).map(
      (each) => [each, each === 'auto' ? log.defaultRoute : each],
    )
  if (name === 'cached')
    return [
      ['yes', text.common.yes],
      ['no', text.common.no],
    ]
  return ['10', '50', '100', '500', '1000'].map((each) => [each, `${each} ms`])
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
        data-filter
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

// The values that a filter of the query log can have.

import { useId, useState, type ReactNode } from 'react'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { useText } from '@/text'
import { useListNames } from '../names'
import { isNegatable, STATUSES, TYPES, type Entry, type Filters, type Name } from './filters'

type Not = 'not_domain' | 'not_client' | 'not_status' | 'not_type'
/** A filter that has a button of its own. */
export type Shown = Exclude<Name, 'domain' | 'from' | 'to' | Not> | 'time'

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
export function Values({ name, value, entries, onChoose }: ValuesProps) {
  const text = useText()
  const { log } = text.dns
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
      {FREE.includes(name) ? <OwnValue name={name} onSet={(typed) => onChoose(typed, not)} /> : null}
    </Chooser>
  )
}

/** A value that is typed. */
function OwnValue({ name, onSet }: { name: ValuesProps['name']; onSet: (typed: string) => void }) {
  const { log } = useText().dns
  const id = useId()
  const [typed, setTyped] = useState('')
  return (
    <form
      className="filters"
      onSubmit={(event) => {
        event.preventDefault()
        if (typed.trim() !== '') onSet(typed.trim())
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

const QUICK = [5, 15, 60, 360, 1440]

export function TimeChoice({
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

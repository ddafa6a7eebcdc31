// Filter rules: for one name or a pattern, for some clients, at certain times.

import { useMemo } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Check, Select, TextField } from '@/components/fields'
import { PickMany } from '@/components/picker'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { useText } from '@/text'
import { numberOf } from '../numbers'
import { linesOf, ResourceSection, type FormProps, type Resource } from '../editor'
import { useDeviceNames, type Names } from '../names'
import { OnOff } from './rewrites'

type Row = Schemas['DnsFilterRule']
type Fields = Schemas['DnsFilterRuleInput']
type Day = Schemas['WeekdayInput']

const DAYS: Day[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

const resource: Resource<Row, Fields> = {
  type: 'dns_filter_rule',
  key: 'rule',
  blank: {
    pattern: '',
    match: 'suffix',
    action: 'block',
    answer: null,
    qtypes: [],
    scope: { devices: [], groups: [], privacy_class: null },
    enabled: true,
    comment: '',
    schedule: null,
  },
  name: (row) => row.pattern,
  fields: ({ pattern, match, action, answer, qtypes, scope, enabled, comment, schedule }) => ({
    pattern,
    match,
    action,
    answer,
    qtypes,
    scope,
    enabled,
    comment,
    schedule,
  }),
  get: (id) => call(client.GET('/dns/filter-rules/{id}', { params: { path: { id } } })),
  create: (body) => call(client.POST('/dns/filter-rules', { body })),
  update: (id, body, etag) =>
    call(
      client.PUT('/dns/filter-rules/{id}', {
        params: { path: { id }, header: etag === null ? {} : { 'If-Match': etag } },
        body,
      }),
    ),
  remove: (id) => call(client.DELETE('/dns/filter-rules/{id}', { params: { path: { id } } })),
}

export function Rules() {
  const text = useText()
  // A new rule is for the device that the address names.
  const [{ for: device }] = useSearchParams()
  const own = useMemo(
    () =>
      device
        ? {
            ...resource,
            blank: { ...resource.blank, scope: { devices: [device], groups: [], privacy_class: null } },
          }
        : resource,
    [device],
  )
  const { lists } = text.dns
  const { columns, rules } = lists
  const query = useGet('/dns/filter-rules')
  const devices = useDeviceNames()
  const groups = new Map((useGet('/device-groups').data?.data ?? []).map((each) => [each.id, each.name]))
  return (
    <ResourceSection
      resource={own}
      words={rules}
      query={query}
      extra={<p className="dim sm">{lists.order}</p>}
      columns={[
        {
          accessorKey: 'pattern',
          header: columns.pattern,
          meta: { label: '' },
          cell: ({ row: { original } }) => (
            <span className="two">
              <span className="mono med breaks">{original.pattern}</span>
              <small>
                {rules.matches[original.match] ?? original.match}
                {original.qtypes.length > 0 ? `, ${original.qtypes.join(' ')}` : ''}
                {original.comment ? `; ${original.comment}` : ''}
              </small>
            </span>
          ),
        },
        {
          accessorKey: 'action',
          header: columns.action,
          cell: ({ row: { original } }) => <RuleAction rule={original} />,
        },
        {
          id: 'scope',
          header: columns.scope,
          enableSorting: false,
          cell: ({ row: { original } }) => (
            <span className="two">
              {scopeOf(original.scope, devices, groups, lists)}
              {original.schedule ? (
                <small>
                  {lists.scheduleOf(original.schedule.days, original.schedule.start, original.schedule.end)}
                </small>
              ) : null}
            </span>
          ),
        },
        {
          accessorKey: 'hits',
          header: columns.hits,
          meta: { numeric: true },
          cell: ({ row: { original } }) => numberOf(original.hits),
        },
        {
          accessorKey: 'last_hit',
          header: columns.lastHit,
          meta: { wide: true },
          cell: ({ row: { original } }) => (original.last_hit ? <Age time={original.last_hit} /> : '-'),
        },
        {
          accessorKey: 'enabled',
          header: columns.state,
          cell: ({ row }) => <OnOff on={row.original.enabled} />,
        },
      ]}
      form={(props) => <RuleForm {...props} />}
      toggles
    />
  )
}

function RuleAction({ rule }: { rule: Row }) {
  const { rules } = useText().dns.lists
  const word = rules.actions[rule.action] ?? rule.action
  if (rule.action === 'block' || rule.action === 'nxdomain' || rule.action === 'refuse')
    return <StateWord state={rule.enabled ? 'blocked' : 'idle'}>{word}</StateWord>
  return (
    <span className="two">
      <span>{word}</span>
      {rule.answer ? <small className="mono">{rule.answer}</small> : null}
    </span>
  )
}

/** Clients of a rule in words. */
export function scopeOf(
  scope: Schemas['Scope'],
  devices: Names,
  groups: Names,
  words: {
    everyone: string
    scopeOf: (devices: string[], groups: string[], privacyClass: string | null) => string
  },
): string {
  if (scope.devices.length === 0 && scope.groups.length === 0 && scope.privacy_class === null)
    return words.everyone
  return words.scopeOf(
    scope.devices.map((id) => devices.get(id) ?? id),
    scope.groups.map((id) => groups.get(id) ?? id),
    scope.privacy_class,
  )
}

function RuleForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { rules, form } = text.dns.lists
  const { value, set } = draft
  const devices = useGet('/devices').data?.data ?? []
  const groups = useGet('/device-groups').data?.data ?? []
  const classes = useGet('/privacy-classes').data?.data ?? []
  const flip = (all: readonly string[], id: string) =>
    all.includes(id) ? all.filter((each) => each !== id) : [...all, id]
  return (
    <>
      <TextField
        label={rules.pattern}
        value={value.pattern}
        error={error('pattern')}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(next) => set('pattern', next)}
      />
      <Select
        label={rules.match}
        value={value.match}
        error={error('match')}
        options={Object.entries(rules.matches) as [Fields['match'], string][]}
        onChange={(next) => set('match', next)}
      />
      <Select
        label={rules.action}
        value={value.action}
        error={error('action')}
        options={Object.entries(rules.actions) as [Fields['action'], string][]}
        onChange={(next) => set('action', next)}
      />
      {value.action === 'rewrite' ? (
        <TextField
          label={rules.answer}
          hint={rules.answerHint}
          value={value.answer ?? ''}
          error={error('answer')}
          onChange={(next) => set('answer', next === '' ? null : next)}
        />
      ) : null}
      <TextField
        label={rules.qtypes}
        hint={rules.qtypesHint}
        value={value.qtypes.join(', ')}
        error={error('qtypes')}
        onChange={(next) => set('qtypes', linesOf(next.toUpperCase()))}
      />
      <TextField
        label={form.comment}
        value={value.comment}
        error={error('comment')}
        onChange={(next) => set('comment', next)}
      />
      <PickMany
        label={rules.devices}
        all={devices}
        chosen={value.scope.devices}
        error={error('scope.devices')}
        onChange={(chosen) => set('scope', { ...value.scope, devices: chosen })}
      />
      <PickMany
        label={rules.groups}
        all={groups}
        chosen={value.scope.groups}
        error={error('scope.groups')}
        hint={rules.scopeHint}
        onChange={(chosen) => set('scope', { ...value.scope, groups: chosen })}
      />
      <Select
        label={rules.privacyClass}
        value={value.scope.privacy_class ?? ''}
        error={error('scope.privacy_class')}
        options={[['', text.common.none], ...classes.map((each) => [each.id, each.name] as const)]}
        onChange={(next) => set('scope', { ...value.scope, privacy_class: next === '' ? null : next })}
      />
      <Check
        label={rules.schedule}
        checked={value.schedule !== null}
        onChange={(on) => set('schedule', on ? { days: [], start: '20:00', end: '07:00' } : null)}
      />
      {value.schedule ? (
        <>
          <TextField
            label={rules.start}
            type="time"
            value={value.schedule.start}
            error={error('schedule.start')}
            onChange={(start) => value.schedule && set('schedule', { ...value.schedule, start })}
          />
          <TextField
            label={rules.end}
            value={value.schedule.end}
            error={error('schedule.end')}
            onChange={(end) => value.schedule && set('schedule', { ...value.schedule, end })}
          />
          <fieldset className="wide checks">
            <legend>{rules.days}</legend>
            {DAYS.map((day) => (
              <Check
                key={day}
                label={day}
                checked={value.schedule?.days.includes(day) ?? false}
                onChange={() =>
                  value.schedule &&
                  set('schedule', { ...value.schedule, days: flip(value.schedule.days, day) as Day[] })
                }
              />
            ))}
            <p className="dim sm wide">{rules.daysHint}</p>
          </fieldset>
        </>
      ) : null}
      <Check label={form.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}

// Filter rules: for one name or a pattern, for some clients, at certain times.

import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Check, Select, TextField } from '@/components/fields'
import { linesOf } from '@/components/draft-lines'
import { FieldList, partOf } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { PickMany } from '@/components/picker'
import { resource } from '@/components/resource'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { numberOf } from '../numbers'
import { useDeviceNames, type Names } from '../names'
import { OnOff } from './rewrites'

type Row = Schemas['DnsFilterRule']
type Fields = Schemas['DnsFilterRuleInput']
type Day = Schemas['WeekdayInput']

const DAYS: Day[] = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

const BLANK: Fields = {
  pattern: '',
  match: 'suffix',
  action: 'block',
  answer: null,
  qtypes: [],
  scope: { devices: [], groups: [], privacy_class: null },
  enabled: true,
  comment: '',
  schedule: null,
}

const filterRules = resource('/dns/filter-rules/{id}', {
  type: 'dns_filter_rule',
  key: 'rule',
  name: (row) => row.pattern,
  blank: BLANK as Pick<Row, keyof Fields>,
})

export function Rules() {
  const text = useText()
  // A new rule is for the device that the address names.
  const [{ for: device }] = useSearchParams()
  const start = useMemo(
    () =>
      device === undefined
        ? undefined
        : { ...filterRules.fields(null), scope: { devices: [device], groups: [], privacy_class: null } },
    [device],
  )
  const { lists } = text.dns
  const { columns, rules } = lists
  const devices = useDeviceNames()
  const groups = new Map((useGet('/device-groups').data?.data ?? []).map((each) => [each.id, each.name]))
  return (
    <ObjectList
      resource={filterRules}
      start={start}
      words={rules}
      extra={<p className="dim sm">{lists.order}</p>}
      columns={[
        {
          head: columns.pattern,
          sort: 'pattern',
          bare: true,
          cell: (row) => <RulePattern rule={row} />,
        },
        { head: columns.action, sort: 'action', cell: (row) => <RuleAction rule={row} /> },
        {
          head: columns.scope,
          cell: (row) => (
            <TwoLines
              second={
                row.schedule
                  ? lists.scheduleOf(row.schedule.days, row.schedule.start, row.schedule.end)
                  : null
              }
            >
              {scopeOf(row.scope, devices, groups, lists)}
            </TwoLines>
          ),
        },
        { head: columns.hits, sort: 'hits', numeric: true, cell: (row) => numberOf(row.hits) },
        {
          head: columns.lastHit,
          sort: 'last_hit',
          wide: true,
          cell: (row) => (row.last_hit ? <Age time={row.last_hit} /> : '-'),
        },
        { head: columns.state, sort: 'enabled', cell: (row) => <OnOff on={row.enabled} /> },
      ]}
      form={(props) => <RuleForm {...props} />}
      toggles
    />
  )
}

function RulePattern({ rule }: { rule: Row }) {
  const { rules } = useText().dns.lists
  const types = rule.qtypes.length > 0 ? `, ${rule.qtypes.join(' ')}` : ''
  const comment = rule.comment ? `; ${rule.comment}` : ''
  return (
    <TwoLines second={`${rules.matches[rule.match]}${types}${comment}`}>
      <span className="mono med breaks">{rule.pattern}</span>
    </TwoLines>
  )
}

function RuleAction({ rule }: { rule: Row }) {
  const { rules } = useText().dns.lists
  const word = rules.actions[rule.action]
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
  const { rules, form } = useText().dns.lists
  const { value, set } = draft
  return (
    <>
      <FieldList
        draft={draft}
        error={error}
        fields={[
          { field: 'pattern', label: rules.pattern, input: { autoCapitalize: 'none' } },
          { field: 'match', kind: 'choice', label: rules.match, options: Object.entries(rules.matches) },
          { field: 'action', kind: 'choice', label: rules.action, options: Object.entries(rules.actions) },
          value.action === 'rewrite' && {
            field: 'answer',
            nullable: true,
            label: rules.answer,
            hint: rules.answerHint,
          },
          {
            field: 'qtypes',
            label: rules.qtypes,
            hint: rules.qtypesHint,
            render: (field) => (
              <TextField
                {...field}
                value={value.qtypes.join(', ')}
                onChange={(next) => set('qtypes', linesOf(next.toUpperCase()))}
              />
            ),
          },
          { field: 'comment', label: form.comment },
        ]}
      />
      <ScopeFields draft={draft} error={error} />
      <Check
        label={rules.schedule}
        checked={value.schedule !== null}
        onChange={(on) => set('schedule', on ? { days: [], start: '20:00', end: '07:00' } : null)}
      />
      {value.schedule ? <ScheduleFields draft={draft} error={error} days={value.schedule.days} /> : null}
      <Check label={form.enabled} checked={value.enabled} onChange={(next) => set('enabled', next)} />
    </>
  )
}

function ScopeFields({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { rules } = text.dns.lists
  const devices = useGet('/devices').data?.data ?? []
  const groups = useGet('/device-groups').data?.data ?? []
  const classes = useGet('/privacy-classes').data?.data ?? []
  const { value: scope, set } = partOf(draft, 'scope')
  return (
    <>
      <PickMany
        label={rules.devices}
        all={devices}
        chosen={scope.devices}
        error={error('scope.devices')}
        onChange={(chosen) => set('devices', chosen)}
      />
      <PickMany
        label={rules.groups}
        all={groups}
        chosen={scope.groups}
        error={error('scope.groups')}
        hint={rules.scopeHint}
        onChange={(chosen) => set('groups', chosen)}
      />
      <Select
        label={rules.privacyClass}
        value={scope.privacy_class ?? ''}
        error={error('scope.privacy_class')}
        options={[['', text.common.none], ...classes.map((each) => [each.id, each.name] as const)]}
        onChange={(next) => set('privacy_class', next === '' ? null : next)}
      />
    </>
  )
}

function ScheduleFields({ draft, error, days }: FormProps<Fields> & { days: readonly Day[] }) {
  const { rules } = useText().dns.lists
  const schedule = partOf(draft, 'schedule')
  const flip = (day: Day) =>
    schedule.set('days', days.includes(day) ? days.filter((each) => each !== day) : [...days, day])
  return (
    <>
      <FieldList
        draft={schedule}
        error={(path) => error(`schedule.${path}`)}
        fields={[
          { field: 'start', label: rules.start, input: { type: 'time' } },
          { field: 'end', label: rules.end },
        ]}
      />
      <fieldset className="wide checks">
        <legend>{rules.days}</legend>
        {DAYS.map((day) => (
          <Check key={day} label={day} checked={days.includes(day)} onChange={() => flip(day)} />
        ))}
        <p className="dim sm wide">{rules.daysHint}</p>
      </fieldset>
    </>
  )
}

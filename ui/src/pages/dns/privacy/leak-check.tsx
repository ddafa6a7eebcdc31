// The leak check: packets as a device sends them, and where they left.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Check } from '@/components/fields'
import { PickOne } from '@/components/picker'
import { Empty, Failure, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { useNow } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { useDeviceNames } from '../names'

type Kind = Schemas['CheckInput']

const KINDS: Kind[] = ['dns', 'ipv4', 'ipv6', 'webrtc', 'doh', 'quic', 'route']
/** Only a packet that got out is red. */
const STATES: Record<string, State> = { pass: 'ok', fail: 'leak', inconclusive: 'unknown' }
const LAST = ['leak-check'] as const

/** Runs the checks, and keeps the last result. */
function useLeakCheck(subject: string, kinds: Kind[]) {
  const cache = useQueryClient()
  // The last result stays while the tab is open.
  const last = useQuery<Answer<Schemas['LeakCheck']>>({
    queryKey: LAST,
    queryFn: () => Promise.reject(new Error('it is run by hand')),
    enabled: false,
    gcTime: Infinity,
  })
  const run = useMutation({
    mutationFn: () => {
      const [kind, id = ''] = subject.split(':')
      return call(
        client.POST('/privacy/leak-check', {
          body: {
            ...(kind === 'device' ? { device_id: id } : {}),
            ...(kind === 'class' ? { privacy_class: id } : {}),
            checks: kinds,
          },
        }),
      )
    },
    onSuccess: (answer) => cache.setQueryData(LAST, answer),
  })
  return { last, run }
}

export function LeakCheck() {
  const { check } = useText().dns.privacy
  const [subject, setSubject] = useState('')
  const [kinds, setKinds] = useState<Kind[]>(KINDS)
  const { last, run } = useLeakCheck(subject, kinds)
  return (
    <Section title={check.title} hint={check.hint}>
      <form
        className="form form--line"
        onSubmit={(event) => {
          event.preventDefault()
          run.mutate()
        }}
      >
        <SubjectChoice value={subject} onChange={setSubject} />
        <Button kind="primary" submit needs="operator" busy={run.isPending} disabled={kinds.length === 0}>
          {check.run}
        </Button>
        <fieldset className="checks wide">
          <legend className="sr">{check.checks}</legend>
          {KINDS.map((kind) => (
            <Check
              key={kind}
              label={check.names[kind]}
              checked={kinds.includes(kind)}
              onChange={(on) => setKinds(KINDS.filter((each) => (each === kind ? on : kinds.includes(each))))}
            />
          ))}
        </fieldset>
      </form>
      {run.isPending ? <Running count={kinds.length} since={run.submittedAt} /> : null}
      <Failure error={run.error} />
      {last.data ? (
        <div className={run.isPending ? 'stale' : undefined}>
          <Result result={last.data.data} />
        </div>
      ) : run.isPending || run.error ? null : (
        <Empty command={check.command}>{check.empty}</Empty>
      )}
    </Section>
  )
}

/** Whom the packets are of: a stranger, a device, or one of a privacy class. */
function SubjectChoice({ value, onChange }: { value: string; onChange: (subject: string) => void }) {
  const { check, switches } = useText().dns.privacy
  const devices = useGet('/devices')
  const classes = useGet('/privacy-classes')
  return (
    <PickOne
      label={check.as}
      value={value}
      options={[
        ['', check.stranger],
        ...(devices.data?.data ?? []).map(
          (each) => [`device:${each.id}`, switches.deviceOf(each.name)] as const,
        ),
        ...(classes.data?.data ?? []).map(
          (each) => [`class:${each.id}`, switches.classOf(each.name)] as const,
        ),
      ]}
      loading={devices.isPending || classes.isPending}
      onChange={onChange}
    />
  )
}

function Running({ count, since }: { count: number; since: number }) {
  const text = useText()
  const now = useNow()
  return (
    <p className="mid" role="status">
      {text.dns.privacy.check.running(count, Math.max(0, Math.floor((now - since) / 1000)))}
    </p>
  )
}

function Result({ result }: { result: Schemas['LeakCheck'] }) {
  const text = useText()
  const { check } = text.dns.privacy
  const names = useDeviceNames()
  const passed = result.results.filter((each) => each.outcome === 'pass').length
  const subject =
    result.device_id === null ? check.stranger : (names.get(result.device_id) ?? result.device_id)
  const { columns } = check
  return (
    <div className="stack stack--close">
      <p className="strong" role="status">
        <StateWord state={STATES[result.verdict] ?? 'unknown'}>
          {check.result(result.verdict, subject, passed, result.results.length)}
        </StateWord>{' '}
        <span className="dim sm">{check.at(formatTime(result.started_at, 'seconds'))}</span>
      </p>
      <Table
        label={check.title}
        rows={result.results}
        id={(each) => each.check}
        columns={[
          {
            head: columns.check,
            bare: true,
            className: 'med',
            cell: (each) => check.names[each.check],
          },
          {
            head: columns.result,
            cell: (each) => (
              <StateWord state={STATES[each.outcome] ?? 'unknown'}>{check.verdicts[each.outcome]}</StateWord>
            ),
          },
          { head: columns.expected, className: 'mid', cell: (each) => each.expected },
          {
            head: columns.observed,
            cell: (each) => (
              <TwoLines second={<span lang="en">{each.detail}</span>}>{each.observed}</TwoLines>
            ),
          },
          {
            head: columns.packets,
            cell: (each) =>
              each.packets.length === 0
                ? check.nonePackets
                : each.packets
                    .map(({ interface: name, packets }) => `${name} ${formatNumber(packets)}`)
                    .join(', '),
          },
          { head: columns.exit, className: 'mono sm', cell: (each) => each.exit_address ?? '-' },
        ]}
      />
      <Risks risks={result.remaining_risks} />
    </div>
  )
}

function Risks({ risks }: { risks: readonly string[] }) {
  const { check } = useText().dns.privacy
  return (
    <div>
      <h3 className="strong">{check.risks}</h3>
      {risks.length === 0 ? (
        <p className="mid">{check.noRisks}</p>
      ) : (
        <ul className="dots">
          {risks.map((risk) => (
            <li key={risk}>{risk}</li>
          ))}
        </ul>
      )}
    </div>
  )
}

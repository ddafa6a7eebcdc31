// What devices did that is unusual for them, with what is usual; and which kinds can be observed.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { answerOf, Page } from '@/components/answer'
import { DataTable } from '@/components/data-table'
import { Facts } from '@/components/facts'
import { FilterSelect } from '@/components/filter-fields'
import { Empty, Loaded, LoadedSection, Section } from '@/components/section'
import { StateWord, Tag } from '@/components/state'
import { Table, type Column } from '@/components/table'
import { Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { useText, type Text } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'

type Anomaly = Schemas['Anomaly']
type Stats = Schemas['AnomalyStats']
type Names = ReadonlyMap<string, string>

const PAGE = 100

export default function Anomalies() {
  const text = useText()
  const words = text.anomalies
  const stats = useGet('/anomalies/stats', {}, { every: 15_000 })
  return (
    <Page
      question={words.question}
      answer={answerOf(stats, text, (read) =>
        read.enabled
          ? words.sentence(read.open, read.last_24h, read.devices_learning, read.devices)
          : words.disabled,
      )}
    >
      <Findings />
      <LoadedSection title={words.kindsTitle} hint={words.kindsHint} query={stats} lines={8}>
        {(read) => <Kinds stats={read} />}
      </LoadedSection>
    </Page>
  )
}

function Findings() {
  const text = useText()
  const words = text.anomalies
  const [search, change] = useSearchParams()
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data ?? []
  const names = new Map(devices.map(({ id, name }) => [id, name]))
  const { kind, device_id, status } = search
  const query = useGet(
    '/anomalies',
    { query: { kind: kind as Anomaly['kind'], device_id, status: status as Anomaly['status'], limit: PAGE } },
    { every: 15_000 },
  )
  const choice = (name: string, label: string, any: string, options: [string, string][]) => (
    <FilterSelect
      label={label}
      any={any}
      options={options}
      value={search[name]}
      onChange={(value) => change({ [name]: value })}
    />
  )
  const kinds = Object.entries(words.kinds).map(([name, [label]]): [string, string] => [name, label])
  return (
    <Section title={words.list} hint={words.listHint}>
      <div className="filters">
        {choice('kind', words.columns.kind, words.anyKind, kinds)}
        {choice('device_id', words.columns.device, words.anyDevice, [...names])}
        {choice('status', words.columns.status, words.anyStatus, Object.entries(words.statuses))}
      </div>
      <Loaded query={query} lines={6} empty={<Empty command="gateway-ctl anomalies">{words.none}</Empty>}>
        {(anomalies) => (
          <DataTable
            label={words.list}
            rows={anomalies}
            columns={columnsOf(text, names)}
            id={({ id }) => String(id)}
            dense
            selected={search.open ?? null}
            open={({ id }) => change({ open: search.open === String(id) ? undefined : String(id) })}
            detail={(anomaly) => <Detail anomaly={anomaly} />}
          />
        )}
      </Loaded>
    </Section>
  )
}

const amount = (value: number, unit: string) =>
  unit === 'bytes' ? formatBytes(value) : `${formatNumber(value, value < 10 ? 1 : 0)} ${unit}`

function columnsOf(text: Text, names: Names): Column<Anomaly>[] {
  const { columns, kinds, statuses } = text.anomalies
  return [
    {
      head: columns.kind,
      bare: true,
      cell: ({ kind, severity }) => (
        <>
          <span className="med">{kinds[kind][0]}</span> <Tag>{text.alerts.severities[severity]}</Tag>
        </>
      ),
    },
    {
      head: columns.device,
      cell: ({ device_id: id }) => (
        <Link to={`/devices/${id}`}>{names.get(id) ?? text.anomalies.deleted}</Link>
      ),
    },
    {
      head: columns.observed,
      numeric: true,
      cell: ({ observed, unit, baseline }) => (
        <TwoLines second={baseline ? text.anomalies.usual(amount(baseline.median, unit)) : null}>
          {amount(observed, unit)}
        </TwoLines>
      ),
    },
    { head: columns.score, numeric: true, wide: true, cell: ({ score }) => formatNumber(score, 2) },
    { head: columns.first, cell: ({ first_seen }) => <Clock time={first_seen} /> },
    {
      head: columns.status,
      cell: ({ status }) => (
        <StateWord state={status === 'open' ? 'degraded' : 'idle'}>{statuses[status]}</StateWord>
      ),
    },
  ]
}

/** What a person needs to judge it: what is usual, from which hours, and on what it rests. */
function Detail({ anomaly }: { anomaly: Anomaly }) {
  const words = useText().anomalies
  const { facts } = words
  const { baseline, unit, window, device_id: device } = anomaly
  return (
    <div className="log__detail">
      <p>
        {words.kinds[anomaly.kind][1]} <span lang="en">{anomaly.description}</span>
      </p>
      <Facts
        className="kv"
        facts={[
          [facts.observed, amount(anomaly.observed, unit)],
          [facts.threshold, baseline && amount(baseline.threshold, unit)],
          [facts.median, baseline && amount(baseline.median, unit)],
          [facts.deviation, baseline && amount(baseline.deviation, unit)],
          [facts.basis, baseline ? words.bases[baseline.basis](baseline.samples) : words.noBaseline],
          [
            facts.window,
            <span key="window">
              <Clock time={window.from} /> – <Clock time={window.to} />
            </span>,
          ],
          [facts.source, words.sources[anomaly.rests_on] ?? anomaly.rests_on],
          [facts.last, <Clock key="last" time={anomaly.last_seen} />],
        ]}
      />
      <div className="btns">
        <Link
          className="btn btn--s"
          to="/activity/flows"
          search={{ device, since: window.from, until: window.to }}
        >
          {words.flows}
        </Link>
        <Link className="btn btn--s" to="/dns" search={{ client: device, from: window.from, to: window.to }}>
          {words.queries}
        </Link>
      </div>
    </div>
  )
}

function Kinds({ stats }: { stats: Stats }) {
  const words = useText().anomalies
  const { columns } = words
  return (
    <Table
      label={words.kindsTitle}
      rows={stats.kinds}
      id={({ kind }) => kind}
      dense
      columns={[
        {
          head: columns.kind,
          bare: true,
          cell: ({ kind }) => <TwoLines second={words.kinds[kind][1]}>{words.kinds[kind][0]}</TwoLines>,
        },
        { head: columns.source, cell: ({ source }) => words.sources[source] ?? source },
        {
          head: columns.state,
          cell: ({ observed, reason }) => (
            <TwoLines second={reason ? <span lang="en">{reason}</span> : null}>
              <StateWord state={observed ? 'ok' : 'idle'}>
                {observed ? words.observed : words.notObserved}
              </StateWord>
            </TwoLines>
          ),
        },
        { head: columns.count, numeric: true, cell: ({ kind }) => formatNumber(stats.by_kind[kind] ?? 0) },
      ]}
    />
  )
}

// Collectors that get the records of flows, and what each has got.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { answerOf, Page } from '@/components/answer'
import type { Edit } from '@/components/edit'
import { FormFields, partOf } from '@/components/form-fields'
import { ObjectForm } from '@/components/object-form'
import { pick, resource, useObject } from '@/components/resource'
import { Loaded, LoadedSection } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { typed } from './alert-receiver-forms'

type Export = Schemas['FlowExport']
type Status = Schemas['CollectorState']

const BLANK: Export = {
  ipfix: { enabled: false, host: '', port: 4739, transport: 'udp', observation_domain: 1 },
  syslog: { enabled: false, host: '', port: 6514, tls: true, ca_certificate: '' },
  otlp: {
    enabled: false,
    url: '',
    ca_certificate: '',
    has_bearer: false,
    logs: true,
    metrics: true,
    metrics_interval_sec: 60,
  },
}

/** A token that is not typed is kept. */
function otlpOf({ enabled, url, ca_certificate, logs, metrics, metrics_interval_sec }: Export['otlp']) {
  return { enabled, url, ca_certificate, logs, metrics, metrics_interval_sec, bearer: '' }
}

const collectors = resource('/flows/export', {
  key: 'flow-export',
  secrets: ['otlp'],
  fields: (stored: Export | null) => {
    const { otlp, ...others } = pick(stored, BLANK)
    return { ...others, otlp: otlpOf(otlp) }
  },
  body: ({ otlp, ...others }) => ({ ...others, otlp: typed(otlp, ['bearer']) }),
})

const STATES: Record<Status['status'], State> = {
  off: 'idle',
  unknown: 'unknown',
  ok: 'ok',
  failed: 'degraded',
}

export default function FlowExport() {
  const text = useText()
  const words = text.flowExport
  const status = useGet('/flows/export/status', {}, { every: 5000 })
  const query = useObject(collectors, '', { every: false })
  return (
    <Page
      question={words.question}
      answer={answerOf(status, text, (list) =>
        words.sentence(
          list.filter((each) => each.status !== 'off').map((each) => words.names[each.collector]),
        ),
      )}
    >
      <LoadedSection title={words.status} hint={words.statusHint} query={status}>
        {(list) => <StatusTable list={list} />}
      </LoadedSection>
      <Loaded query={query} lines={12}>
        {(stored) => <Form stored={stored} etag={query.data?.etag ?? null} />}
      </Loaded>
    </Page>
  )
}

function StatusTable({ list }: { list: Status[] }) {
  const words = useText().flowExport
  const { columns } = words
  return (
    <Table
      label={words.status}
      rows={list}
      id={({ collector }) => collector}
      columns={[
        { head: columns.collector, bare: true, cell: ({ collector }) => words.names[collector] },
        {
          head: columns.status,
          cell: ({ status, error }) => (
            <TwoLines second={error ? <span lang="en">{error}</span> : null}>
              <StateWord state={STATES[status]}>{words.statuses[status]}</StateWord>
            </TwoLines>
          ),
        },
        { head: columns.sent, numeric: true, cell: ({ sent }) => formatNumber(sent) },
        {
          head: columns.waiting,
          numeric: true,
          cell: ({ waiting }) => (waiting === null ? '-' : formatNumber(waiting)),
        },
        { head: columns.lost, numeric: true, cell: ({ lost }) => formatNumber(lost) },
        { head: columns.last, cell: ({ last_sent_at: time }) => (time ? <Age time={time} /> : '-') },
      ]}
    />
  )
}

type Fields = ReturnType<typeof collectors.fields>
interface PartProps {
  edit: Edit<Fields>
}

function Form({ stored, etag }: { stored: Export; etag: string | null }) {
  return (
    <ObjectForm resource={collectors} stored={{ data: stored, etag }}>
      {(edit) => (
        <>
          <Ipfix edit={edit} />
          <Syslog edit={edit} />
          <Otlp edit={edit} hasToken={stored.otlp.has_bearer} />
        </>
      )}
    </ObjectForm>
  )
}

function Ipfix({ edit: { draft, problems: error } }: PartProps) {
  const words = useText().flowExport
  return (
    <>
      <h2>{words.names.ipfix}</h2>
      <FormFields
        draft={partOf(draft, 'ipfix')}
        texts={words.ipfix}
        error={error}
        fields={[
          { field: 'enabled', kind: 'check', wide: true, path: 'ipfix.enabled' },
          { field: 'host', path: 'ipfix.host' },
          { field: 'port', kind: 'number', min: 1, max: 65_535, path: 'ipfix.port' },
          {
            field: 'transport',
            kind: 'choice',
            options: Object.entries(words.transports),
            path: 'ipfix.transport',
          },
          { field: 'observation_domain', kind: 'number', min: 0, path: 'ipfix.observation_domain' },
        ]}
      />
    </>
  )
}

function Syslog({ edit: { draft, problems: error } }: PartProps) {
  const words = useText().flowExport
  return (
    <>
      <h2>{words.names.syslog}</h2>
      <FormFields
        draft={partOf(draft, 'syslog')}
        texts={words.syslog}
        error={error}
        fields={[
          { field: 'enabled', kind: 'check', wide: true, path: 'syslog.enabled' },
          { field: 'host', path: 'syslog.host' },
          { field: 'port', kind: 'number', min: 1, max: 65_535, path: 'syslog.port' },
          { field: 'tls', kind: 'check', wide: true, path: 'syslog.tls' },
          { field: 'ca_certificate', kind: 'area', rows: 3, path: 'syslog.ca_certificate' },
        ]}
      />
    </>
  )
}

function Otlp({ edit: { draft, problems: error }, hasToken }: PartProps & { hasToken: boolean }) {
  const words = useText().flowExport
  const seconds = { min: 5, max: 3600, path: 'otlp.metrics_interval_sec' }
  return (
    <>
      <h2>{words.names.otlp}</h2>
      <FormFields
        draft={partOf(draft, 'otlp')}
        texts={words.otlp}
        error={error}
        fields={[
          { field: 'enabled', kind: 'check', wide: true, path: 'otlp.enabled' },
          { field: 'url', input: { type: 'url' }, wide: true, path: 'otlp.url' },
          { field: 'bearer', kind: 'secret', hint: hasToken ? words.kept : undefined, path: 'otlp.bearer' },
          { field: 'metrics_interval_sec', kind: 'number', ...seconds },
          { field: 'logs', kind: 'check', path: 'otlp.logs' },
          { field: 'metrics', kind: 'check', path: 'otlp.metrics' },
          { field: 'ca_certificate', kind: 'area', rows: 3, path: 'otlp.ca_certificate' },
        ]}
      />
    </>
  )
}

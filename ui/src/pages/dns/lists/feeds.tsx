// Threat feeds: lists of known bad names that the gateway reads again by itself.

import type { Schemas } from '@/api/client'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { StateWord, Tag } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { useText } from '@/text'
import { numberOf } from '../numbers'

type Row = Schemas['ThreatFeed']
type Fields = Schemas['ThreatFeedInput']

const threatFeeds = resource('/dns/threat-feeds/{id}', {
  type: 'threat_feed',
  key: 'feed',
  blank: {
    name: '',
    url: '',
    format: 'domains',
    category: 'malware',
    enabled: true,
    interval_h: 24,
    builtin: false,
  },
})

export function Feeds() {
  const text = useText()
  const { lists } = text.dns
  const { columns, feeds } = lists
  return (
    <ObjectList
      resource={threatFeeds}
      words={feeds}
      columns={[
        {
          head: columns.name,
          sort: 'name',
          bare: true,
          cell: (row) => (
            <span className="two">
              <span className="med">
                {row.name} {row.builtin ? <Tag>{feeds.builtin}</Tag> : null}
              </span>
              <small className="mono breaks">{row.url}</small>
            </span>
          ),
        },
        {
          head: columns.category,
          sort: 'category',
          cell: (row) => feeds.categories[row.category],
        },
        {
          head: columns.state,
          sort: (row) => `${String(row.enabled)} ${row.status ?? ''}`,
          cell: (row) => <FeedState row={row} />,
        },
        { head: columns.size, sort: 'entries', numeric: true, cell: (row) => numberOf(row.entries) },
        {
          head: columns.updated,
          sort: 'last_updated',
          cell: (row) => (row.last_updated ? <Age time={row.last_updated} /> : '-'),
        },
        {
          head: columns.next,
          sort: 'next_update',
          wide: true,
          cell: (row) => <Clock time={row.next_update} />,
        },
      ]}
      form={(props) => <FeedForm {...props} />}
      toggles
      fixed={(row) => row.builtin}
    />
  )
}

function FeedState({ row }: { row: Row }) {
  const { states } = useText().dns.lists
  if (!row.enabled) return <StateWord state="idle">{states.off}</StateWord>
  if (row.error || row.status === 'error')
    return (
      <span className="two">
        <StateWord state="down">{states.error}</StateWord>
        {row.error ? <small className="breaks">{row.error}</small> : null}
      </span>
    )
  if (row.status === null) return <StateWord state="unknown">{states.waiting}</StateWord>
  if (row.status === 'stale') return <StateWord state="degraded">{states.stale}</StateWord>
  return <span className="st st--plain">{row.status === 'ok' ? states.ok : row.status}</span>
}

function FeedForm({ draft, error }: FormProps<Fields>) {
  const { feeds, form } = useText().dns.lists
  return (
    <FieldList
      draft={draft}
      error={error}
      fields={[
        { field: 'name', label: feeds.name, disabled: draft.value.builtin },
        { field: 'url', label: feeds.url, input: { type: 'url' } },
        { field: 'format', kind: 'choice', label: feeds.format, options: Object.entries(feeds.formats) },
        {
          field: 'category',
          kind: 'choice',
          label: feeds.category,
          options: Object.entries(feeds.categories),
        },
        { field: 'interval_h', kind: 'number', label: feeds.interval, min: 1, max: 720 },
        { field: 'enabled', kind: 'check', label: form.enabled },
      ]}
    />
  )
}

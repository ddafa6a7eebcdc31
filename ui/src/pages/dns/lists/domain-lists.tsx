// The allowlist and the blocklist: single domains, and lists that are subscribed by their address.

import type { Schemas } from '@/api/client'
import { Select } from '@/components/fields'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import type { Column } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText, type Text } from '@/text'
import { numberOf } from '../numbers'

type Row = Schemas['DnsBlock'] | Schemas['DnsAllow']

// A type, not an interface: a draft holds plain fields.
type Fields = {
  domain: string | null
  name: string | null
  url: string | null
  enabled: boolean
  comment: string
}

const BLANK: Fields = { domain: '', name: null, url: null, enabled: true, comment: '' }
const nameOf = (row: Row) => row.domain ?? row.name ?? row.url ?? row.id

const allow = resource('/dns/allowlist/{id}', { type: 'dns_allow', key: 'allow', name: nameOf, blank: BLANK })

const block = resource('/dns/blocklist/{domain}', {
  type: 'dns_block',
  key: 'block',
  id: (row) => row.id,
  name: nameOf,
  blank: BLANK,
})

export function DomainLists() {
  const text = useText()
  const { lists } = text.dns
  const columns = columnsOf(text)
  return (
    <>
      <ObjectList
        resource={block}
        words={lists.block}
        columns={columns}
        form={(props) => <ListForm {...props} />}
        toggles
        primary
      />
      <ObjectList
        resource={allow}
        words={lists.allow}
        columns={columns}
        form={(props) => <ListForm {...props} />}
        toggles
      />
    </>
  )
}

function columnsOf(text: Text): Column<Row>[] {
  const { columns } = text.dns.lists
  return [
    {
      head: columns.entry,
      sort: nameOf,
      bare: true,
      cell: (row) => (
        <TwoLines second={row.comment}>
          <span className="med">{nameOf(row)}</span>
          {row.url ? <small className="mono">{row.url}</small> : null}
        </TwoLines>
      ),
    },
    { head: columns.state, sort: (row) => String(row.enabled), cell: (row) => <ListState row={row} /> },
    {
      head: columns.size,
      sort: (row) => String(row.rules_count ?? 0).padStart(12, '0'),
      numeric: true,
      cell: (row) => numberOf(row.rules_count),
    },
    {
      head: columns.updated,
      sort: (row) => row.last_updated ?? '',
      cell: (row) => (row.last_updated ? <Age time={row.last_updated} /> : '-'),
    },
  ]
}

function ListState({ row }: { row: Row }) {
  const { states } = useText().dns.lists
  if (!row.enabled) return <StateWord state="idle">{states.off}</StateWord>
  if (row.error)
    return (
      <TwoLines second={row.error}>
        <StateWord state="down">{states.error}</StateWord>
      </TwoLines>
    )
  if (row.url && row.last_updated === null) return <StateWord state="unknown">{states.waiting}</StateWord>
  return <span className="st st--plain">{states.on}</span>
}

function ListForm({ draft, error }: FormProps<Fields>) {
  const text = useText()
  const { form } = text.dns.lists
  const { value } = draft
  const isList = value.url !== null
  return (
    <>
      <Select
        label={form.kind}
        value={isList ? 'list' : 'domain'}
        options={[
          ['domain', form.domainKind],
          ['list', form.listKind],
        ]}
        onChange={(kind) =>
          draft.replace(
            kind === 'list'
              ? { ...value, domain: null, url: '', name: '' }
              : { ...value, domain: '', url: null, name: null },
          )
        }
      />
      <FieldList
        draft={draft}
        error={error}
        fields={[
          isList && { field: 'name', label: form.listName },
          isList && { field: 'url', label: form.url, hint: form.urlHint, input: { type: 'url' } },
          !isList && { field: 'domain', label: form.domain, input: { autoCapitalize: 'none' } },
          { field: 'comment', label: form.comment },
          { field: 'enabled', kind: 'check', label: form.enabled },
        ]}
      />
    </>
  )
}

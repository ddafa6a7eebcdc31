// Privacy classes: what is enforced for devices and policies.

import type { Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { useClasses } from './data'
import { policies as entry } from './entry'

type PrivacyClass = Schemas['PrivacyClass']

const SWITCHES = ['force_dns', 'force_ntp', 'block_doh', 'block_dot', 'block_quic', 'block_ipv6'] as const

export default function Classes() {
  const text = useText()
  const go = useGo()
  const query = useClasses()
  const list = query.data?.data
  const columns: ColumnDef<PrivacyClass, unknown>[] = [
    {
      accessorKey: 'name',
      header: text.common.name,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <span className="two">
          <span>
            <Link className="med" to={`/policies/classes/${original.id}`}>
              {original.name}
            </Link>{' '}
            {original.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
          </span>
          {original.description ? <small>{original.description}</small> : null}
        </span>
      ),
    },
    {
      accessorKey: 'fail_policy_floor',
      header: text.policies.floor,
      cell: ({ row: { original } }) =>
        original.fail_policy_floor === 'fail-open' ? (
          <span className="dim">{text.policies.failWords[original.fail_policy_floor]}</span>
        ) : (
          (text.policies.failWords[original.fail_policy_floor] ?? original.fail_policy_floor)
        ),
    },
    {
      id: 'blocks',
      header: text.policies.blocks,
      enableSorting: false,
      cell: ({ row: { original } }) => {
        const on = SWITCHES.filter((field) => original[field]).map(
          (field) => text.policies.switchShort[field],
        )
        return on.length > 0 ? on.join(', ') : <span className="dim">-</span>
      },
    },
    {
      accessorKey: 'webrtc',
      header: text.policies.webrtc,
      meta: { wide: true },
      cell: ({ row: { original } }) => text.policies.webrtcs[original.webrtc] ?? original.webrtc,
    },
    {
      accessorKey: 'query_log',
      header: text.policies.queryLog,
      cell: ({ row: { original } }) => text.policies.queryLogs[original.query_log] ?? original.query_log,
    },
    {
      accessorKey: 'allow_exceptions',
      header: text.policies.exceptionsAllowed,
      cell: ({ row: { original } }) =>
        original.allow_exceptions ? text.policies.allowed : text.policies.notAllowed,
    },
  ]
  return (
    <>
      <Answer
        question={text.policies.classQuestion}
        actions={
          <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/classes/new">
            {text.policies.newClass}
          </LinkButton>
        }
      >
        {list
          ? text.policies.classAnswer(
              list.length,
              list.filter((each) => each.fail_policy_floor !== 'fail-open').length,
            )
          : query.error
            ? text.common.unreachable
            : text.common.loading}
      </Answer>
      <Tabs entry={entry} />
      <Section title={text.policies.classes} hint={text.policies.classesHint}>
        <Loaded query={query}>
          {(rows) => (
            <DataTable
              label={text.policies.classes}
              rows={rows}
              columns={columns}
              id={(each) => each.id}
              open={(each) => go(`/policies/classes/${each.id}`)}
            />
          )}
        </Loaded>
      </Section>
    </>
  )
}

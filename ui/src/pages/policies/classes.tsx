// Privacy classes: what is enforced for devices and policies.

import type { Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { answerOf, Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection } from '@/components/section'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { useClasses } from './data'

type PrivacyClass = Schemas['PrivacyClass']

const SWITCHES = ['force_dns', 'force_ntp', 'block_doh', 'block_dot', 'block_quic', 'block_ipv6'] as const

export default function Classes() {
  const text = useText()
  const go = useGo()
  const query = useClasses()
  const columns = useColumns()
  return (
    <Page
      question={text.policies.classQuestion}
      actions={
        <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/classes/new">
          {text.policies.newClass}
        </LinkButton>
      }
      answer={answerOf(query, text, (list) => {
        const strict = list.filter((each) => each.fail_policy_floor !== 'fail-open')
        return text.policies.classAnswer(list.length, strict.length)
      })}
    >
      <LoadedSection title={text.policies.classes} hint={text.policies.classesHint} query={query}>
        {(rows) => (
          <DataTable
            label={text.policies.classes}
            rows={rows}
            columns={columns}
            id={(each) => each.id}
            open={(each) => go(`/policies/classes/${each.id}`)}
          />
        )}
      </LoadedSection>
    </Page>
  )
}

function useColumns(): Column<PrivacyClass>[] {
  const text = useText()
  return [
    {
      head: text.common.name,
      sort: 'name',
      bare: true,
      cell: (row) => (
        <TwoLines second={row.description}>
          <Link className="med" to={`/policies/classes/${row.id}`}>
            {row.name}
          </Link>{' '}
          {row.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
        </TwoLines>
      ),
    },
    {
      head: text.policies.floor,
      sort: 'fail_policy_floor',
      cell: (row) =>
        row.fail_policy_floor === 'fail-open' ? (
          <span className="dim">{text.policies.failWords[row.fail_policy_floor]}</span>
        ) : (
          text.policies.failWords[row.fail_policy_floor]
        ),
    },
    {
      head: text.policies.blocks,
      cell: (row) => {
        const on = SWITCHES.filter((field) => row[field]).map((field) => text.policies.switchShort[field])
        return on.length > 0 ? on.join(', ') : <span className="dim">-</span>
      },
    },
    {
      head: text.policies.webrtc,
      sort: 'webrtc',
      wide: true,
      cell: (row) => text.policies.webrtcs[row.webrtc] ?? row.webrtc,
    },
    {
      head: text.policies.queryLog,
      sort: 'query_log',
      cell: (row) => text.policies.queryLogs[row.query_log],
    },
    {
      head: text.policies.exceptionsAllowed,
      sort: 'allow_exceptions',
      cell: (row) => (row.allow_exceptions ? text.policies.allowed : text.policies.notAllowed),
    },
  ]
}

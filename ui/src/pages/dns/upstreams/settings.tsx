// The settings of the resolver: values, where they come from, and when a change takes effect.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { LoadedSection } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { settingsBelow } from './setting-rows'

export function ResolverSettings() {
  const text = useText()
  const { settings } = text.dns.upstreams
  const { columns } = settings
  const query = useGet('/settings', {}, { every: 60_000 })
  return (
    <LoadedSection
      title={settings.title}
      hint={settings.hint}
      actions={
        <Link className="link" to="/system/settings">
          {settings.change}
        </Link>
      }
      query={query}
    >
      {(tree) => (
        <DataTable
          dense
          label={settings.title}
          rows={settingsBelow(tree, 'dns')}
          id={(row) => row.key}
          columns={[
            { head: columns.key, sort: 'key', bare: true, cell: (row) => <code>{row.key}</code> },
            {
              head: columns.value,
              sort: 'value',
              cell: (row) => (
                <>
                  <code className="breaks">{row.value}</code>{' '}
                  {row.pending ? <Tag kind="pending">{settings.pending}</Tag> : null}
                </>
              ),
            },
            {
              head: columns.source,
              sort: 'source',
              cell: (row) => settings.sources[row.source] ?? row.source,
            },
            { head: columns.apply, sort: 'apply', cell: (row) => settings.applies[row.apply] ?? row.apply },
          ]}
        />
      )}
    </LoadedSection>
  )
}

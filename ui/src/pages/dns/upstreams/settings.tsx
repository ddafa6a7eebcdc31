// The settings of the resolver: values, where they come from, and when a change takes effect.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { DataTable } from '@/components/data-table'
import { Loaded, Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { settingsBelow } from './setting-rows'

export function ResolverSettings() {
  const text = useText()
  const { settings } = text.dns.upstreams
  const { columns } = settings
  const query = useGet('/settings', {}, { every: 60_000 })
  return (
    <Section
      title={settings.title}
      hint={settings.hint}
      actions={
        <Link className="link" to="/system/settings">
          {settings.change}
        </Link>
      }
    >
      <Loaded query={query}>
        {(tree) => (
          <DataTable
            dense
            label={settings.title}
            rows={settingsBelow(tree, 'dns')}
            id={(row) => row.key}
            columns={[
              {
                accessorKey: 'key',
                header: columns.key,
                meta: { label: '' },
                cell: ({ row }) => <code>{row.original.key}</code>,
              },
              {
                accessorKey: 'value',
                header: columns.value,
                cell: ({ row: { original } }) => (
                  <>
                    <code className="breaks">{original.value}</code>{' '}
                    {original.pending ? <Tag kind="pending">{settings.pending}</Tag> : null}
                  </>
                ),
              },
              {
                accessorKey: 'source',
                header: columns.source,
                cell: ({ row }) => settings.sources[row.original.source] ?? row.original.source,
              },
              {
                accessorKey: 'apply',
                header: columns.apply,
                cell: ({ row }) => settings.applies[row.original.apply] ?? row.original.apply,
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

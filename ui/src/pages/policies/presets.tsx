// Presets: templates of policies and profiles.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Empty, Loaded, Section } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { policies as entry } from './entry'
import { Hops } from './hops'
import { bodyOf, draftOf, kindOf, startOf, type Preset } from './preset-model'

export const usePresets = () => useGet('/presets')

export default function Presets() {
  const text = useText()
  const words = text.presets
  const query = usePresets()
  const list = query.data?.data
  const columns: ColumnDef<Preset, unknown>[] = [
    {
      accessorKey: 'name',
      header: text.common.name,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <span className="two">
          <span>
            <Link className="med" to={`/policies/presets/${original.id}`}>
              {original.name}
            </Link>{' '}
            {original.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
          </span>
          {original.description ? <small>{original.description}</small> : null}
        </span>
      ),
    },
    {
      accessorKey: 'category',
      header: words.category,
      meta: { wide: true },
      cell: ({ row: { original } }) => words.categories[original.category] ?? original.category,
    },
    {
      id: 'kind',
      header: words.makes,
      accessorFn: kindOf,
      cell: ({ row: { original } }) => words.kinds[kindOf(original)],
    },
    {
      id: 'hops',
      header: text.policies.columns.hops,
      enableSorting: false,
      cell: ({ row: { original } }) => <TemplateHops preset={original} />,
    },
    {
      id: 'fail',
      header: text.policies.failLabel,
      accessorFn: (preset) => draftOf(preset, startOf(preset)).fail_policy ?? '',
      cell: ({ getValue }) => text.policies.failWords[getValue() as string] ?? (getValue() as string),
    },
    {
      id: 'use',
      header: '',
      enableSorting: false,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <Link className="btn btn--s" to={`/policies/presets/${original.id}`}>
          {words.use}
        </Link>
      ),
    },
  ]
  return (
    <>
      <Answer
        question={words.question}
        actions={
          <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/presets/new">
            {words.new}
          </LinkButton>
        }
      >
        {list
          ? words.answer(list.length, list.filter((preset) => !preset.builtin).length)
          : query.error
            ? text.common.unreachable
            : text.common.loading}
      </Answer>
      <Tabs entry={entry} />
      <Section title={words.label} hint={words.hint}>
        <Loaded
          query={query}
          isEmpty={(rows) => rows.length === 0}
          empty={<Empty command="GET /api/v1/presets">{words.empty}</Empty>}
        >
          {(rows) => (
            <DataTable label={words.label} rows={rows} columns={columns} id={(preset) => preset.id} />
          )}
        </Loaded>
      </Section>
    </>
  )
}

/** The hops of a template, or that they are left open. */
function TemplateHops({ preset }: { preset: Preset }) {
  const text = useText()
  const { hops, splitting, hop_mode, fail_policy } = draftOf(preset, startOf(preset))
  if (hops.length > 0) return <Hops way={{ hops, splitting, hop_mode }} />
  const { chain, profile } = bodyOf(preset)
  if (typeof chain === 'string') return <>{text.policies.chainHops(chain)}</>
  if (typeof profile === 'string') return <>{text.policies.profileHops(profile)}</>
  return <span className="dim">{fail_policy === 'fail-open' ? text.presets.direct : text.presets.open}</span>
}

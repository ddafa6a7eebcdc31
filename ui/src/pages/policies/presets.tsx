// Presets: templates of policies and profiles.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { answerOf, Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection, Empty } from '@/components/section'
import { Tag } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { Hops } from './hops'
import { bodyOf, draftOf, kindOf, startOf, type Preset } from './preset-model'

export const usePresets = () => useGet('/presets')

/** What happens to its traffic when its hops are down. */
const failOf = (preset: Preset) => draftOf(preset, startOf(preset)).fail_policy

export default function Presets() {
  const text = useText()
  const words = text.presets
  const query = usePresets()
  const columns = useColumns()
  return (
    <Page
      question={words.question}
      actions={
        <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/presets/new">
          {words.new}
        </LinkButton>
      }
      answer={answerOf(query, text, (list) =>
        words.answer(list.length, list.filter((preset) => !preset.builtin).length),
      )}
    >
      <LoadedSection
        title={words.label}
        hint={words.hint}
        query={query}
        empty={<Empty command="GET /api/v1/presets">{words.empty}</Empty>}
      >
        {(rows) => <DataTable label={words.label} rows={rows} columns={columns} id={(preset) => preset.id} />}
      </LoadedSection>
    </Page>
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

function useColumns(): Column<Preset>[] {
  const text = useText()
  const words = text.presets
  return [
    {
      head: text.common.name,
      sort: 'name',
      bare: true,
      cell: (row) => (
        <TwoLines second={row.description}>
          <Link className="med" to={`/policies/presets/${row.id}`}>
            {row.name}
          </Link>{' '}
          {row.builtin ? <Tag>{text.policies.builtin}</Tag> : null}
        </TwoLines>
      ),
    },
    {
      head: words.category,
      sort: 'category',
      wide: true,
      cell: (row) => words.categories[row.category],
    },
    { head: words.makes, sort: kindOf, cell: (row) => words.kinds[kindOf(row)] },
    { head: text.policies.columns.hops, cell: (row) => <TemplateHops preset={row} /> },
    {
      head: text.policies.failLabel,
      sort: failOf,
      cell: (row) => {
        const fail = failOf(row)
        return fail && text.policies.failWords[fail]
      },
    },
    {
      cell: (row) => (
        <Link className="btn btn--s" to={`/policies/presets/${row.id}`}>
          {words.use}
        </Link>
      ),
    },
  ]
}

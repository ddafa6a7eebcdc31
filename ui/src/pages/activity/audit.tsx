// The audit trail: who changed what, and with what result.

import { useGet } from '@/api/query'
import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { useSearchParams, type Search } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Icon } from '@/components/icons'
import { Empty, Loaded, Section } from '@/components/section'
import { Glyph, StateWord, type State } from '@/components/state'
import { Age, Clock } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useText, type Text } from '@/text'
import { AuditDetail } from './audit-detail'
import {
  brokenLink,
  changesOf,
  fieldNames,
  FILTERS,
  PAGE,
  pageOf,
  queryOf,
  type AuditEntry,
  type Filter,
} from './audit-entries'

const RESULT: Record<string, State> = { denied: 'blocked', failed: 'degraded' }

export default function Audit() {
  const text = useText()
  const words = text.activity.audit
  const [search, change] = useSearchParams()
  const query = queryOf(search)
  // Older entries do not change any more.
  const read = useGet('/audit', { query }, { every: query.before ? false : 15_000 })
  const entries = read.data?.data ?? []
  const filtered = FILTERS.some((name) => search[name])
  return (
    <Page
      question={words.question}
      answer={read.data ? <Sentence entries={entries} filtered={filtered} /> : text.common.loading}
    >
      <Section
        title={words.entries}
        hint={query.before ? words.upTo(query.before) : words.newestFirst}
        actions={filtered || !read.data ? null : <Chain entries={entries} />}
      >
        <Filters entries={entries} search={search} change={change} />
        <Loaded
          query={read}
          lines={8}
          empty={<Empty command="gateway-ctl audit">{filtered ? words.none : words.noneYet}</Empty>}
        >
          {(list) => (
            <>
              <DataTable
                label={words.entries}
                rows={list}
                columns={columns(text, change)}
                id={(entry) => String(entry.id)}
                dense
                selected={search.entry ?? null}
                open={(entry) =>
                  change({ entry: search.entry === String(entry.id) ? undefined : String(entry.id) })
                }
                detail={(entry) => <AuditDetail entry={entry} />}
              />
              <Pager entries={list} search={search} />
            </>
          )}
        </Loaded>
      </Section>
    </Page>
  )
}

function Sentence({ entries, filtered }: { entries: AuditEntry[]; filtered: boolean }) {
  const text = useText()
  const t = text.activity.audit
  const last = entries[0]
  if (!last) return <>{filtered ? t.none : t.noneYet}</>
  const count = (result: string) => entries.filter((entry) => entry.result === result).length
  const refused = count('denied')
  const failed = count('failed')
  return (
    <>
      {t.last} {text.actions.action(last.action)} {t.by(last.actor)}, <Age time={last.timestamp} />.{' '}
      {refused + failed === 0 ? t.allWell(entries.length) : null}
      {refused > 0 ? (
        <Link to="/activity" search={{ result: 'denied' }}>
          {t.refused(refused)}
        </Link>
      ) : null}
      {refused > 0 && failed > 0 ? ` ${t.and} ` : null}
      {failed > 0 ? (
        <Link to="/activity" search={{ result: 'failed' }}>
          {t.failed(failed)}
        </Link>
      ) : null}
      {refused + failed > 0 ? ` ${t.among(entries.length)}` : null}
    </>
  )
}

function Chain({ entries }: { entries: AuditEntry[] }) {
  const text = useText()
  const t = text.activity.audit
  if (entries.length < 2) return null
  const broken = brokenLink(entries)
  return broken === null ? (
    <StateWord state="ok">{t.chainOk(entries.length)}</StateWord>
  ) : (
    <StateWord state="degraded">{t.chainBroken(broken)}</StateWord>
  )
}

interface FiltersProps {
  entries: AuditEntry[]
  search: Search
  change: (change: Search) => void
}

function Filters({ entries, search, change }: FiltersProps) {
  const text = useText()
  const t = text.activity.audit
  const plain = (value: string) => value
  const choices: [name: Filter, label: string, values: string[], show: (value: string) => string][] = [
    ['actor', t.actor, entries.map((entry) => entry.actor), plain],
    ['action', t.action, entries.map((entry) => entry.action), text.actions.action],
    ['resource_type', t.resource, entries.map((entry) => entry.resource_type), text.actions.object],
    ['result', t.result, ['success', 'denied', 'failed'], (value) => t.results[value] ?? value],
  ]
  return (
    <div className="filters">
      {choices.map(([name, label, values, show]) => (
        <FilterChoice
          key={name}
          label={label}
          value={search[name]}
          values={values}
          show={show}
          onChange={(value) => change({ [name]: value, before: undefined, entry: undefined })}
        />
      ))}
      {(['resource_id', 'request_id'] as const).map((name) =>
        search[name] ? (
          <span key={name} className="flt flt--on">
            {name === 'resource_id' ? t.resourceId : t.requestId} <b className="mono">{search[name]}</b>
            <button
              type="button"
              className="x"
              aria-label={t.clear}
              onClick={() => change({ [name]: undefined, before: undefined })}
            >
              <Icon name="x" />
            </button>
          </span>
        ) : null,
      )}
      {FILTERS.some((name) => search[name]) ? (
        <Button
          kind="ghost"
          onClick={() =>
            change({
              ...Object.fromEntries(FILTERS.map((name) => [name, undefined])),
              before: undefined,
              entry: undefined,
            })
          }
        >
          {t.clear}
        </Button>
      ) : null}
    </div>
  )
}

interface ChoiceProps {
  label: string
  value: string | undefined
  values: string[]
  show: (value: string) => string
  onChange: (value: string) => void
}

function FilterChoice({ label, value, values, show, onChange }: ChoiceProps) {
  const t = useText().activity.audit
  const all = [...new Set([...(value ? [value] : []), ...values])].sort()
  return (
    <select
      className="field"
      aria-label={label}
      value={value ?? ''}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{t.any(label)}</option>
      {all.map((each) => (
        <option key={each} value={each}>
          {show(each)}
        </option>
      ))}
    </select>
  )
}

function columns(text: Text, change: (change: Search) => void): Column<AuditEntry>[] {
  const t = text.activity.audit
  return [
    {
      head: t.time,
      cell: (row) => (
        <span className="mono sm nowrap">
          <Clock time={row.timestamp} seconds />
        </span>
      ),
    },
    {
      head: t.actor,
      cell: (row) => (
        <TwoLines second={[t.auth[row.auth], row.ip].filter(Boolean).join(', ')}>
          <button
            type="button"
            className="plainbtn med"
            onClick={() => change({ actor: row.actor, before: undefined })}
          >
            {row.actor}
          </button>
        </TwoLines>
      ),
    },
    { head: t.action, cell: (row) => text.actions.action(row.action) },
    { head: t.resource, cell: (row) => <Resource entry={row} /> },
    { head: t.changed, wide: true, cell: (row) => <Fields entry={row} /> },
    { head: t.result, cell: (row) => <Result result={row.result} /> },
  ]
}

function Resource({ entry }: { entry: AuditEntry }) {
  const text = useText()
  const { changes } = changesOf(entry.details)
  const own = changes.find((change) => change.id === entry.resource_id) ?? changes[0]
  const name = own?.name ?? entry.resource_id ?? ''
  const page = own?.op === 'delete' ? undefined : pageOf(entry.resource_type, own?.id ?? entry.resource_id)
  return (
    <TwoLines second={text.actions.object(entry.resource_type)}>
      <span className="med">{page ? <Link to={page}>{name}</Link> : name}</span>
    </TwoLines>
  )
}

function Fields({ entry }: { entry: AuditEntry }) {
  const { changes } = changesOf(entry.details)
  const names = changes.flatMap(fieldNames)
  return names.length > 0 ? <span className="mono sm">{[...new Set(names)].join(', ')}</span> : <>-</>
}

export function Result({ result }: { result: Schemas['AuditResult'] }) {
  const text = useText()
  const name = text.activity.audit.results[result] ?? result
  const state = RESULT[result]
  if (state) return <StateWord state={state}>{name}</StateWord>
  return (
    <span className="st st--plain">
      {result === 'success' ? <Icon name="check" /> : <Glyph state="unknown" />}
      {name}
    </span>
  )
}

function Pager({ entries, search }: { entries: AuditEntry[]; search: Search }) {
  const text = useText()
  const t = text.activity.audit
  const last = entries[entries.length - 1]
  const here: Record<string, string> = {}
  for (const name of FILTERS) if (search[name]) here[name] = search[name]
  return (
    <p className="pager">
      {search.before ? (
        <Link className="btn" to="/activity" search={here}>
          {t.newest}
        </Link>
      ) : null}
      {last && entries.length === PAGE ? (
        <Link className="btn" to="/activity" search={{ ...here, before: String(last.id) }}>
          {t.older}
        </Link>
      ) : (
        <span>{t.start}</span>
      )}
    </p>
  )
}

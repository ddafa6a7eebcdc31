// All settings: where each value comes from, and when a change is in force.

import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { Command } from '@/components/command'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { Icon } from '@/components/icons'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText, type Text } from '@/text'
import { SettingEditor } from './setting-editor'
import { find, groupsOf, listOf, shown, type Setting } from './settings-tree'

export default function Settings() {
  const text = useText()
  const t = text.system.settings
  const [search] = useSearchParams()
  const read = useGet('/settings')
  const all = listOf(read.data?.data)
  const changed = all.filter((setting) => setting.source !== 'default')
  const waiting = all.filter((setting) => setting.pending_restart)
  const found = find(search.only === 'changed' ? changed : all, search.find ?? '')
  // A search that leads to one setting opens it.
  const selected = search.key ?? (search.find && found.length === 1 ? found[0]?.key : undefined)
  return (
    <Page
      question={t.question}
      answer={
        read.data ? (
          <>
            <Link to="/system/settings" search={{ only: 'changed' }}>
              {t.differ(changed.length, all.length)}
            </Link>{' '}
            {t.fromDefaults(changed.length)} {t.restart(waiting.length)}
          </>
        ) : (
          text.common.loading
        )
      }
    >
      {waiting.length > 0 ? (
        <Section title={t.needsRestart} hint={t.needsRestartHint}>
          <ul className="rows">
            {waiting.map((setting) => (
              <li key={setting.key}>
                <span>
                  <code>{setting.key}</code> = <code>{shown(setting.value) || t.empty}</code>
                </span>
              </li>
            ))}
          </ul>
          <Command>{t.command}</Command>
        </Section>
      ) : null}
      <Section title={t.list}>
        <Filters />
        <Loaded query={read} lines={10}>
          {() =>
            found.length === 0 ? (
              <Empty>{t.none}</Empty>
            ) : (
              groupsOf(found, all).map(({ name, settings }) => (
                <Group key={name} name={t.groups[name] ?? name} settings={settings} selected={selected} />
              ))
            )
          }
        </Loaded>
      </Section>
    </Page>
  )
}

function Filters() {
  const t = useText().system.settings
  const [search, change] = useSearchParams()
  return (
    <div className="filters">
      <span className="search">
        <Icon name="search" />
        <input
          className="field"
          type="search"
          data-filter
          aria-label={t.find}
          placeholder={t.find}
          value={search.find ?? ''}
          onChange={(event) => change({ find: event.target.value, key: undefined })}
        />
      </span>
      <label className="check">
        <input
          type="checkbox"
          checked={search.only === 'changed'}
          onChange={(event) => change({ only: event.target.checked ? 'changed' : undefined })}
        />
        {t.only}
      </label>
    </div>
  )
}

interface GroupProps {
  name: string
  settings: Setting[]
  /** Key of the setting that is open. */
  selected: string | undefined
}

function Group({ name, settings, selected }: GroupProps) {
  const text = useText()
  const [, change] = useSearchParams()
  return (
    <section className="settings" aria-label={name}>
      <h3>
        {name} <span className="dim">{settings.length}</span>
      </h3>
      <DataTable
        label={name}
        rows={settings}
        columns={columns(text)}
        id={(setting) => setting.key}
        selected={selected ?? null}
        open={(setting) => change({ key: selected === setting.key ? undefined : setting.key })}
        detail={(setting) => <SettingEditor key={setting.key} setting={setting} />}
      />
    </section>
  )
}

function columns(text: Text): Column<Setting>[] {
  const t = text.system.settings
  return [
    { head: t.key, sort: 'key', bare: true, cell: (row) => <code className="med">{row.key}</code> },
    {
      head: t.value,
      cell: (row) =>
        shown(row.value) ? (
          <code className="value">{shown(row.value)}</code>
        ) : (
          <span className="dim">{t.empty}</span>
        ),
    },
    {
      head: t.source,
      sort: 'source',
      cell: (row) => {
        const name = t.sources[row.source]
        return row.source === 'default' ? <span className="dim">{name}</span> : name
      },
    },
    {
      head: t.apply,
      sort: 'apply',
      cell: (row) =>
        row.pending_restart ? (
          <StateWord state="degraded">{t.waits}</StateWord>
        ) : (
          <span className="mid">{t.applies[row.apply]}</span>
        ),
    },
  ]
}

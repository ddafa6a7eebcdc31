// All settings: where each value comes from, and when a change is in force.

import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Link } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { Command } from '@/components/command'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Icon } from '@/components/icons'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText, type Text } from '@/text'
import { system } from './entry'
import { SettingEditor } from './setting-editor'
import { find, groupsOf, listOf, shown, type Setting } from './settings-tree'

export default function Settings() {
  const text = useText()
  const t = text.system.settings
  const [search, change] = useSearchParams()
  const read = useGet('/settings')
  const all = listOf(read.data?.data)
  const changed = all.filter((setting) => setting.source !== 'default')
  const waiting = all.filter((setting) => setting.pending_restart)
  const found = find(search.only === 'changed' ? changed : all, search.find ?? '')
  // A search that leads to one setting opens it.
  const selected = search.key ?? (search.find && found.length === 1 ? found[0]?.key : undefined)
  return (
    <>
      <Answer question={t.question}>
        {read.data ? (
          <>
            <Link to="/system/settings" search={{ only: 'changed' }}>
              {t.differ(changed.length, all.length)}
            </Link>{' '}
            {t.fromDefaults(changed.length)} {t.restart(waiting.length)}
          </>
        ) : (
          text.common.loading
        )}
      </Answer>
      <Tabs entry={system} />
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
        <Loaded query={read} lines={10}>
          {() =>
            found.length === 0 ? (
              <Empty>{t.none}</Empty>
            ) : (
              groupsOf(found, all).map(({ name, settings }) => (
                <section key={name} className="settings" aria-label={t.groups[name] ?? name}>
                  <h3>
                    {t.groups[name] ?? name} <span className="dim">{settings.length}</span>
                  </h3>
                  <DataTable
                    label={t.groups[name] ?? name}
                    rows={settings}
                    columns={columns(text)}
                    id={(setting) => setting.key}
                    selected={selected ?? null}
                    open={(setting) => change({ key: selected === setting.key ? undefined : setting.key })}
                    detail={(setting) => <SettingEditor key={setting.key} setting={setting} />}
                  />
                </section>
              ))
            )
          }
        </Loaded>
      </Section>
    </>
  )
}

function columns(text: Text): ColumnDef<Setting>[] {
  const t = text.system.settings
  return [
    {
      accessorKey: 'key',
      header: t.key,
      meta: { label: '' },
      cell: ({ row }) => <code className="med">{row.original.key}</code>,
    },
    {
      id: 'value',
      header: t.value,
      enableSorting: false,
      cell: ({ row }) =>
        shown(row.original.value) ? (
          <code className="value">{shown(row.original.value)}</code>
        ) : (
          <span className="dim">{t.empty}</span>
        ),
    },
    {
      accessorKey: 'source',
      header: t.source,
      cell: ({ row }) => {
        const name = t.sources[row.original.source] ?? row.original.source
        return row.original.source === 'default' ? <span className="dim">{name}</span> : name
      },
    },
    {
      accessorKey: 'apply',
      header: t.apply,
      cell: ({ row }) =>
        row.original.pending_restart ? (
          <StateWord state="degraded">{t.waits}</StateWord>
        ) : (
          <span className="mid">{t.applies[row.original.apply] ?? row.original.apply}</span>
        ),
    },
  ]
}

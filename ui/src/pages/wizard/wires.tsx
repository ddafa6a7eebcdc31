// Step 3: which interface goes to the internet and which to the devices.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Failure, Loaded } from '@/components/section'
import { StateWord } from '@/components/state'
import { useNow } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { StepPage, type StepProps } from './step'

type Interface = Schemas['Interface']
/** The uplink and the LAN. */
interface Wires {
  wan: string | undefined
  lan: string[]
}

/** Milliseconds for which a link counts as just changed. */
const JUST_NOW = 20_000

export function WiresStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.wires
  const interfaces = useGet('/interfaces', {}, { every: 1000 })
  const list = (interfaces.data?.data ?? []).filter(
    (each) => each.role !== 'loopback' && each.role !== 'tunnel',
  )
  const current = {
    wan: list.find((each) => each.role === 'uplink')?.name,
    lan: list.filter((each) => each.role === 'lan').map((each) => each.name),
  }
  const [chosen, setChosen] = useState<Wires>()
  const { wan, lan } = chosen ?? current
  const changed = wan !== current.wan || lan.join() !== current.lan.join()
  const summary = t.chosen(wan ?? '-', lan.join(', ') || '-')
  const save = useFormAction(
    () =>
      call(
        client.PUT('/settings', {
          params: { header: {} },
          body: { network: { wan_iface: { value: wan }, lan_iface: { value: lan } } },
        }),
      ),
    () => {
      props.finish(summary)
      return t.saved
    },
  )
  const complete = wan !== undefined && lan.length > 0
  const submit = () => {
    if (!changed) return props.finish(summary)
    save.run()
  }
  return (
    <StepPage
      {...props}
      step="wires"
      title={t.title}
      lead={t.lead}
      action={text.wizard.next}
      onAction={submit}
      busy={save.busy}
      disabled={!complete}
    >
      <Failure error={save.error} />
      <Loaded query={interfaces} lines={5}>
        {() => <WireTable list={list} wan={wan} lan={lan} onChoose={setChosen} />}
      </Loaded>
      <p className="dim">
        {complete ? null : `${t.needBoth} `}
        {t.both} {changed ? t.noCounters : null}
      </p>
    </StepPage>
  )
}

interface TableProps extends Wires {
  list: Interface[]
  onChoose: (wires: Wires) => void
}

function WireTable({ list, wan, lan, onChoose }: TableProps) {
  const t = useText().wizard.wires
  const nics = useGet('/platform', {}, { every: 5000 }).data?.data.nics
  const links = useLinkChanges(list)
  const without = (name: string) => lan.filter((each) => each !== name)
  return (
    <Table
      label={t.title}
      rows={list}
      id={(each) => each.name}
      rowClass={(each) => (links[each.name] ? 'is-sel' : undefined)}
      columns={[
        {
          head: t.interface,
          bare: true,
          cell: (each) => (
            <TwoLines second={each.kind || each.mac}>
              <span className="med mono">{each.name}</span>
            </TwoLines>
          ),
        },
        {
          head: t.link,
          cell: (each) => (
            <span role="status">
              <TwoLines second={links[each.name] ? t.changed : null}>
                <StateWord state={each.up ? 'ok' : 'down'}>{each.up ? t.up : t.down}</StateWord>
              </TwoLines>
            </span>
          ),
        },
        { head: t.role, cell: (each) => t.roles[each.role] },
        {
          head: t.addresses,
          className: 'mono sm',
          cell: ({ addresses }) => <Addresses addresses={addresses} />,
        },
        { head: t.speed, cell: (each) => <Speed nic={nics?.find((nic) => nic.name === each.name)} /> },
        {
          head: t.wan,
          cell: ({ name }) => (
            <input
              type="radio"
              name="wan"
              className="pick"
              aria-label={t.asUplink(name)}
              checked={wan === name}
              onChange={() => onChoose({ wan: name, lan: without(name) })}
            />
          ),
        },
        {
          head: t.lan,
          cell: ({ name }) => (
            <input
              type="checkbox"
              className="pick"
              aria-label={t.asLan(name)}
              checked={lan.includes(name)}
              onChange={(event) =>
                onChoose({
                  wan: wan === name ? undefined : wan,
                  lan: event.target.checked ? [...lan, name] : without(name),
                })
              }
            />
          ),
        },
      ]}
    />
  )
}

/** The addresses of an interface without the link-local ones. */
function Addresses({ addresses }: { addresses: string[] }) {
  return (
    <span className="targets">
      {addresses.length > 0
        ? addresses
            .filter((address) => !address.startsWith('fe80'))
            .map((address) => <span key={address}>{address}</span>)
        : '-'}
    </span>
  )
}

function Speed({ nic }: { nic: Schemas['Nic'] | undefined }) {
  return <>{nic?.speed ? `${formatNumber(nic.speed)} Mbit/s` : '-'}</>
}

/** The interfaces whose link changed while one looked. */
function useLinkChanges(list: Interface[]): Record<string, boolean> {
  const now = useNow()
  const [known, setKnown] = useState<Record<string, boolean>>({})
  const [times, setTimes] = useState<Record<string, number>>({})
  const news = list.filter((each) => known[each.name] !== each.up)
  if (news.length > 0) {
    const moved = news.filter((each) => known[each.name] !== undefined)
    setKnown({ ...known, ...Object.fromEntries(news.map((each) => [each.name, each.up])) })
    if (moved.length > 0) setTimes({ ...times, ...Object.fromEntries(moved.map((each) => [each.name, now])) })
  }
  return Object.fromEntries(
    Object.entries(times)
      .filter(([, time]) => now - time < JUST_NOW)
      .map(([name]) => [name, true]),
  )
}

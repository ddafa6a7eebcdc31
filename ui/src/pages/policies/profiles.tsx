// Profiles and chains: ways that policies, devices and groups share.

import type { Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { Answer, Tabs } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable, type ColumnDef } from '@/components/data-table'
import { Empty, Loaded, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { useChains, useClasses, useProfiles } from './data'
import { policies as entry } from './entry'
import { Hops, nameIn } from './hops'

type Profile = Schemas['Profile']
type Chain = Schemas['Chain']

export default function Profiles() {
  const text = useText()
  const profiles = useProfiles()
  const chains = useChains()
  const newProfile = (
    <LinkButton kind="primary" icon="plus" needs="operator" to="/policies/profiles/new">
      {text.policies.newProfile}
    </LinkButton>
  )
  const newChain = (
    <LinkButton icon="plus" needs="operator" to="/policies/chains/new">
      {text.policies.newChain}
    </LinkButton>
  )
  const failed = profiles.error ?? chains.error
  return (
    <>
      <Answer
        question={text.policies.profileQuestion}
        actions={
          <>
            {newChain}
            {newProfile}
          </>
        }
      >
        {profiles.data && chains.data
          ? text.policies.profileAnswer(profiles.data.data.length, chains.data.data.length)
          : failed
            ? text.common.unreachable
            : text.common.loading}
      </Answer>
      <Tabs entry={entry} />
      <Section title={text.policies.profiles} hint={text.policies.profilesHint}>
        <Loaded
          query={profiles}
          isEmpty={(list) => list.length === 0}
          empty={<Empty command="gateway-ctl profiles">{text.policies.profilesEmpty}</Empty>}
        >
          {(list) => <ProfileTable list={list} />}
        </Loaded>
      </Section>
      <Section title={text.policies.chains} hint={text.policies.chainsHint}>
        <Loaded
          query={chains}
          isEmpty={(list) => list.length === 0}
          empty={<Empty command="gateway-ctl chains">{text.policies.chainsEmpty}</Empty>}
        >
          {(list) => <ChainTable list={list} />}
        </Loaded>
      </Section>
    </>
  )
}

function ProfileTable({ list }: { list: Profile[] }) {
  const text = useText()
  const go = useGo()
  const classes = useClasses().data?.data
  const chains = useChains().data?.data
  const columns: ColumnDef<Profile, unknown>[] = [
    {
      accessorKey: 'name',
      header: text.common.name,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <span className="two">
          <Link className="med" to={`/policies/profiles/${original.id}`}>
            {original.name}
          </Link>
          {original.description ? <small>{original.description}</small> : null}
        </span>
      ),
    },
    {
      id: 'hops',
      header: text.policies.columns.hops,
      enableSorting: false,
      cell: ({ row: { original } }) =>
        original.chain ? (
          text.policies.chainHops(nameIn(chains, original.chain))
        ) : original.hops.length > 0 ? (
          <Hops way={original} />
        ) : (
          <span className="dim">{text.policies.noHops[original.fail_policy] ?? '-'}</span>
        ),
    },
    {
      accessorKey: 'fail_policy',
      header: text.policies.columns.fail,
      cell: ({ row: { original } }) => text.policies.failWords[original.fail_policy] ?? original.fail_policy,
    },
    {
      id: 'dns',
      header: text.policies.dns,
      enableSorting: false,
      cell: ({ row: { original } }) => text.policies.dnsModes[original.dns.mode] ?? original.dns.mode,
    },
    {
      id: 'class',
      header: text.policies.privacyClass,
      enableSorting: false,
      cell: ({ row: { original } }) =>
        original.privacy_class ? nameIn(classes, original.privacy_class) : '-',
    },
  ]
  return (
    <DataTable
      label={text.policies.profiles}
      rows={list}
      columns={columns}
      id={(profile) => profile.id}
      open={(profile) => go(`/policies/profiles/${profile.id}`)}
    />
  )
}

const STATES: Record<string, State> = {
  up: 'ok',
  down: 'down',
  degraded: 'degraded',
  disabled: 'idle',
  unknown: 'unknown',
}

export function ChainState({ status }: { status: string | undefined }) {
  const text = useText()
  if (status === undefined) return <>-</>
  return (
    <StateWord state={STATES[status] ?? 'unknown'}>{text.policies.chainStatus[status] ?? status}</StateWord>
  )
}

function ChainTable({ list }: { list: Chain[] }) {
  const text = useText()
  const go = useGo()
  const columns: ColumnDef<Chain, unknown>[] = [
    {
      accessorKey: 'name',
      header: text.common.name,
      meta: { label: '' },
      cell: ({ row: { original } }) => (
        <Link className="med" to={`/policies/chains/${original.id}`}>
          {original.name}
        </Link>
      ),
    },
    {
      id: 'hops',
      header: text.policies.columns.hops,
      enableSorting: false,
      cell: ({ row: { original } }) => <Hops way={{ hops: original.hops }} />,
    },
    {
      accessorKey: 'status',
      header: text.policies.status,
      cell: ({ row: { original } }) => <ChainState status={original.status} />,
    },
    {
      accessorKey: 'mtu_effective',
      header: text.policies.effectiveMtu,
      meta: { numeric: true },
      cell: ({ row: { original } }) =>
        original.mtu_effective == null ? '-' : formatNumber(original.mtu_effective),
    },
  ]
  return (
    <DataTable
      label={text.policies.chains}
      rows={list}
      columns={columns}
      id={(chain) => chain.id}
      open={(chain) => go(`/policies/chains/${chain.id}`)}
    />
  )
}

// Profiles and chains: ways that policies, devices and groups share.

import type { Schemas } from '@/api/client'
import { Link, useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { DataTable } from '@/components/data-table'
import type { Column } from '@/components/table'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { useChains, useClasses, useProfiles } from './data'
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
    <Page
      question={text.policies.profileQuestion}
      actions={
        <>
          {newChain}
          {newProfile}
        </>
      }
      answer={
        profiles.data && chains.data
          ? text.policies.profileAnswer(profiles.data.data.length, chains.data.data.length)
          : failed
            ? text.common.unreachable
            : text.common.loading
      }
    >
      <LoadedSection
        title={text.policies.profiles}
        hint={text.policies.profilesHint}
        query={profiles}
        empty={<Empty command="gateway-ctl profiles">{text.policies.profilesEmpty}</Empty>}
      >
        {(list) => <ProfileTable list={list} />}
      </LoadedSection>
      <LoadedSection
        title={text.policies.chains}
        hint={text.policies.chainsHint}
        query={chains}
        empty={<Empty command="gateway-ctl chains">{text.policies.chainsEmpty}</Empty>}
      >
        {(list) => <ChainTable list={list} />}
      </LoadedSection>
    </Page>
  )
}

function ProfileTable({ list }: { list: Profile[] }) {
  const text = useText()
  const go = useGo()
  const classes = useClasses().data?.data
  const chains = useChains().data?.data
  const columns: Column<Profile>[] = [
    {
      head: text.common.name,
      sort: 'name',
      bare: true,
      cell: (row) => (
        <TwoLines second={row.description}>
          <Link className="med" to={`/policies/profiles/${row.id}`}>
            {row.name}
          </Link>
        </TwoLines>
      ),
    },
    {
      head: text.policies.columns.hops,
      cell: (row) =>
        row.chain ? (
          text.policies.chainHops(nameIn(chains, row.chain))
        ) : row.hops.length > 0 ? (
          <Hops way={row} />
        ) : (
          <span className="dim">{text.policies.noHops[row.fail_policy]}</span>
        ),
    },
    {
      head: text.policies.columns.fail,
      sort: 'fail_policy',
      cell: (row) => text.policies.failWords[row.fail_policy],
    },
    { head: text.policies.dns, cell: (row) => text.policies.dnsModes[row.dns.mode] },
    {
      head: text.policies.privacyClass,
      cell: (row) => (row.privacy_class ? nameIn(classes, row.privacy_class) : '-'),
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

export function ChainState({ status }: { status: Schemas['ChainStatus'] | undefined }) {
  const text = useText()
  if (status === undefined) return <>-</>
  return <StateWord state={STATES[status] ?? 'unknown'}>{text.policies.chainStatus[status]}</StateWord>
}

function ChainTable({ list }: { list: Chain[] }) {
  const text = useText()
  const go = useGo()
  const columns: Column<Chain>[] = [
    {
      head: text.common.name,
      sort: 'name',
      bare: true,
      cell: (row) => (
        <Link className="med" to={`/policies/chains/${row.id}`}>
          {row.name}
        </Link>
      ),
    },
    { head: text.policies.columns.hops, cell: (row) => <Hops way={{ hops: row.hops }} /> },
    { head: text.policies.status, sort: 'status', cell: (row) => <ChainState status={row.status} /> },
    {
      head: text.policies.effectiveMtu,
      sort: 'mtu_effective',
      numeric: true,
      cell: (row) => (row.mtu_effective == null ? '-' : formatNumber(row.mtu_effective)),
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

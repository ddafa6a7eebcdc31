// The hosts on the network, devices or not.

import { useMemo } from 'react'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Check } from '@/components/fields'
import { HostTable } from '@/components/hosts/host-table'
import { useHostCount, useHosts, wordsOf, type Host } from '@/components/hosts/hosts'
import { StrangerSwitch } from '@/components/hosts/stranger-choice'
import { Empty, Loaded } from '@/components/section'
import { FilterBox, FilterSelect } from '@/components/filter-fields'
import { useText } from '@/text'

export default function Hosts() {
  const text = useText()
  const words = text.hosts
  const query = useHosts()
  const hosts = query.data?.data
  const total = useHostCount() ?? 0
  return (
    <Page
      question={words.question}
      answer={
        !hosts
          ? text.common.loading
          : hosts.length === 0
            ? words.answerNone
            : hosts.length < total
              ? words.atLeast(hosts.length, total)
              : words.answer(
                  total,
                  hosts.filter((host) => host.device_id === null).length,
                  hosts.filter((host) => host.online).length,
                )
      }
    >
      <StrangerSwitch />
      <Loaded query={query} lines={8} empty={<Empty>{words.empty}</Empty>}>
        {(all) => <List all={all} />}
      </Loaded>
    </Page>
  )
}

function List({ all }: { all: Host[] }) {
  const text = useText()
  const words = text.hosts
  const [search, change] = useSearchParams()
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const names = useMemo(() => new Map((devices ?? []).map((each) => [each.id, each.name])), [devices])
  const { q = '', decision = '', only } = search
  const rows = useMemo(() => {
    const typed = q.toLowerCase().split(/\s+/).filter(Boolean)
    return all.filter((host) => {
      if (only && host.device_id !== null) return false
      if (decision && host.path?.treatment !== decision) return false
      const device = host.device_id ? (names.get(host.device_id) ?? '') : ''
      const said = `${wordsOf(host)} ${device}`.toLowerCase()
      return typed.every((word) => said.includes(word))
    })
  }, [all, q, decision, only, names])
  return (
    <div className="sec">
      <Filters />
      <p className="dim sm" role="status">
        {words.shown(rows.length, all.length)}
      </p>
      {rows.length === 0 ? (
        <Empty
          action={
            <button
              type="button"
              className="btn"
              onClick={() => change({ q: undefined, decision: undefined, only: undefined })}
            >
              {text.devices.clear}
            </button>
          }
        >
          {words.nothing}
        </Empty>
      ) : (
        <HostTable label={words.label} hosts={rows} once devices={names} />
      )}
    </div>
  )
}

function Filters() {
  const text = useText()
  const words = text.hosts
  const [search, change] = useSearchParams()
  const { only } = search
  return (
    <div className="filters" role="search">
      <FilterBox
        label={text.common.filter}
        placeholder={words.find}
        value={search.q}
        onChange={(q) => change({ q })}
      />
      <FilterSelect
        label={words.way}
        any={text.devices.anyPath}
        options={Object.entries(words.treatments)}
        value={search.decision}
        onChange={(decision) => change({ decision })}
      />
      <Check
        label={words.onlyStrangers}
        checked={only !== undefined}
        onChange={(on) => change({ only: on ? 'strangers' : undefined })}
      />
    </div>
  )
}

// The check for captive portals, by each uplink.

import { call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { Button } from '@/components/button'
import { Failure, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Age } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

const STATES: Record<string, State> = { online: 'ok', captive: 'degraded', offline: 'down' }

export function CaptiveCheck() {
  const text = useText()
  const words = text.network.uplinks
  const columns = words.captiveColumns
  const check = useChange(() => call(client.POST('/captive/check')))
  const report = check.data?.data
  return (
    <Section
      title={words.captive}
      hint={report ? <Age time={report.checked_at} /> : words.captiveHint}
      actions={
        <Button size="small" needs="operator" busy={check.isPending} onClick={() => check.mutate(undefined)}>
          {words.captiveCheck}
        </Button>
      }
    >
      <Failure error={check.error} />
      {report ? (
        <Table
          rows={report.uplinks}
          id={(uplink) => uplink.interface}
          columns={[
            { head: columns.uplink, bare: true, className: 'med', cell: (uplink) => uplink.uplink },
            {
              head: columns.state,
              cell: ({ state }) => (
                <StateWord state={STATES[state] ?? 'unknown'}>
                  {words.captiveStates[state] ?? state}
                </StateWord>
              ),
            },
            {
              head: columns.targets,
              cell: ({ targets }) => targets.map((target) => <Target key={target.address} target={target} />),
            },
            // The address comes from the portal, so it is text and no link.
            { head: columns.portal, cell: (uplink) => uplink.portal_url ?? '-' },
          ]}
        />
      ) : check.error ? null : (
        <p className="quiet">{words.captiveNone}</p>
      )}
    </Section>
  )
}

function Target({ target }: { target: Schemas['TargetCheck'] }) {
  const latency = target.latency_ms === null ? null : `${formatNumber(target.latency_ms)} ms`
  return (
    <TwoLines
      second={
        <>
          {target.address}
          {', '}
          {target.error ?? [target.status, latency].filter((each) => each !== null).join(', ')}
        </>
      }
    >
      {target.url}
    </TwoLines>
  )
}

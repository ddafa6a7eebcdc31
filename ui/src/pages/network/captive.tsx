// The check for captive portals, by each uplink.

import { call, client } from '@/api/client'
import { useChange } from '@/api/query'
import { Button } from '@/components/button'
import { Failure, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Age } from '@/components/time'
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
      {check.error ? <Failure error={check.error} /> : null}
      {report ? (
        <table className="tbl tbl--card">
          <thead>
            <tr>
              <th scope="col">{columns.uplink}</th>
              <th scope="col">{columns.state}</th>
              <th scope="col">{columns.targets}</th>
              <th scope="col">{columns.portal}</th>
            </tr>
          </thead>
          <tbody>
            {report.uplinks.map((uplink) => (
              <tr key={uplink.interface}>
                <td className="med">{uplink.uplink}</td>
                <td data-l={columns.state}>
                  <StateWord state={STATES[uplink.state] ?? 'unknown'}>
                    {words.captiveStates[uplink.state] ?? uplink.state}
                  </StateWord>
                </td>
                <td data-l={columns.targets}>
                  {uplink.targets.map((target) => (
                    <span key={target.address} className="two">
                      <span>{target.url}</span>
                      <small>
                        {target.address}
                        {', '}
                        {target.error ??
                          [
                            target.status,
                            target.latency_ms === null ? null : `${formatNumber(target.latency_ms)} ms`,
                          ]
                            .filter((each) => each !== null)
                            .join(', ')}
                      </small>
                    </span>
                  ))}
                </td>
                {/* The address comes from the portal, so it is text and no link. */}
                <td data-l={columns.portal}>{uplink.portal_url ?? '-'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : check.error ? null : (
        <p className="quiet">{words.captiveNone}</p>
      )}
    </Section>
  )
}

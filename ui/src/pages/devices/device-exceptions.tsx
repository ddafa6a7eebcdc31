// The exceptions of a device: active ones, and those that have ended.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { ExceptionDialog } from '@/components/exceptions/exception-dialog'
import { ExceptionRow } from '@/components/exceptions/exception-row'
import { Loaded, Section } from '@/components/section'
import { Clock } from '@/components/time'
import { useText } from '@/text'

export function DeviceExceptions({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const [composing, setComposing] = useState(false)
  const query = useGet('/exceptions', { query: { device_id: device.id } })
  return (
    <Section
      title={text.devices.tabs.exceptions}
      actions={
        <Button size="small" icon="plus" needs="operator" onClick={() => setComposing(true)}>
          {text.overview.exceptions.create}
        </Button>
      }
    >
      <Loaded
        query={query}
        isEmpty={(exceptions) => exceptions.length === 0}
        empty={<p className="dim">{text.devices.noExceptions}</p>}
      >
        {(exceptions) => {
          const active = exceptions.filter((each) => each.status === 'active')
          const ended = exceptions
            .filter((each) => each.status !== 'active')
            .sort((one, other) => other.created_at.localeCompare(one.created_at))
          return (
            <>
              {active.map((each) => (
                <ExceptionRow key={each.id} exception={each} />
              ))}
              {active.length === 0 ? <p className="dim">{text.overview.exceptions.empty}</p> : null}
              {ended.length > 0 ? (
                <table className="tbl tbl--card" aria-label={text.devices.endedExceptions}>
                  <thead>
                    <tr>
                      <th scope="col">{text.exception.type}</th>
                      <th scope="col">{text.devices.began}</th>
                      <th scope="col">{text.devices.ended}</th>
                      <th scope="col">{text.exception.reason}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {ended.slice(0, 50).map((each) => (
                      <tr key={each.id}>
                        <td>{text.exception.types[each.type] ?? each.type}</td>
                        <td data-l={text.devices.began}>
                          <Clock time={each.starts_at} />
                        </td>
                        <td data-l={text.devices.ended}>
                          <Clock time={each.revoked_at ?? each.ended_at ?? each.expires_at} />
                        </td>
                        <td data-l={text.exception.reason}>{each.reason || '-'}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              ) : null}
            </>
          )
        }}
      </Loaded>
      <ExceptionDialog open={composing} onClose={() => setComposing(false)} device={device} />
    </Section>
  )
}

// The exceptions of a device: active ones, and those that have ended.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { ExceptionDialog } from '@/components/exceptions/exception-dialog'
import { ExceptionRow } from '@/components/exceptions/exception-row'
import { Loaded, Section } from '@/components/section'
import { Clock } from '@/components/time'
import { Table } from '@/components/table'
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
      <Loaded query={query} empty={<p className="dim">{text.devices.noExceptions}</p>}>
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
                <Table
                  label={text.devices.endedExceptions}
                  rows={ended.slice(0, 50)}
                  id={(each) => each.id}
                  columns={[
                    {
                      head: text.exception.type,
                      bare: true,
                      cell: (each) => text.exception.types[each.type],
                    },
                    { head: text.devices.began, cell: (each) => <Clock time={each.starts_at} /> },
                    {
                      head: text.devices.ended,
                      cell: (each) => <Clock time={each.revoked_at ?? each.ended_at ?? each.expires_at} />,
                    },
                    { head: text.exception.reason, cell: (each) => each.reason || '-' },
                  ]}
                />
              ) : null}
            </>
          )
        }}
      </Loaded>
      <ExceptionDialog open={composing} onClose={() => setComposing(false)} device={device} />
    </Section>
  )
}

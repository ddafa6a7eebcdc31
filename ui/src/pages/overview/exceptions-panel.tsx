// The active exceptions with the time they have left.

import { useState } from 'react'
import { useGet } from '@/api/query'
import { ExceptionDialog } from '@/components/exceptions/exception-dialog'
import { ExceptionRow } from '@/components/exceptions/exception-row'
import { Loaded, Section } from '@/components/section'
import { useText } from '@/text'

export function ExceptionsPanel() {
  const text = useText()
  const [composing, setComposing] = useState(false)
  const query = useGet('/exceptions/active', {}, { every: 30_000 })
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  return (
    <Section
      title={text.overview.exceptions.title}
      actions={
        <button type="button" className="link" onClick={() => setComposing(true)}>
          {text.overview.exceptions.create}
        </button>
      }
    >
      <Loaded query={query} empty={<p className="dim">{text.overview.exceptions.empty}</p>}>
        {(exceptions) => (
          <>
            {exceptions.map((exception) => (
              <ExceptionRow
                key={exception.id}
                exception={exception}
                device={devices?.find((each) => each.id === exception.device_id)?.name ?? exception.device_id}
              />
            ))}
            <p className="dim sm">{text.overview.exceptions.kernel}</p>
          </>
        )}
      </Loaded>
      <ExceptionDialog open={composing} onClose={() => setComposing(false)} />
    </Section>
  )
}

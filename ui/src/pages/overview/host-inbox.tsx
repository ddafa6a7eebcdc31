// Hosts that have answered the gateway, without a decision.

import { useState } from 'react'
import { Link } from '@/session/link'
import { HostTable } from '@/components/hosts/host-table'
import { useAnsweringHosts, type Host } from '@/components/hosts/hosts'
import { showAll, useHidden } from '@/components/hosts/hidden'
import { useTreatment } from '@/components/hosts/stranger-choice'
import { LoadedSection } from '@/components/section'
import { useText } from '@/text'

/** Hosts that are shown before a click. */
const FIRST = 5
/** Hosts of the inbox at most; the list has all. */
const MOST = 50

export function HostInbox() {
  const text = useText()
  const words = text.hosts.inbox
  const query = useAnsweringHosts()
  const { value } = useTreatment()
  const hidden = useHidden()
  const strangers = query.data?.data.filter((host) => host.device_id === null)
  const shown = strangers?.filter((host) => !hidden.has(host.id))
  return (
    <LoadedSection
      title={shown && shown.length > 0 ? words.titleOf(shown.length) : words.title}
      hint={shown && shown.length > 0 && value ? words.hint[value] : undefined}
      actions={
        <Link className="link" to="/devices/hosts">
          {words.all}
        </Link>
      }
      query={query}
      lines={2}
    >
      {(all) => (
        <Body
          known={all.length > 0}
          shown={shown ?? []}
          left={(strangers?.length ?? 0) - (shown?.length ?? 0)}
        />
      )}
    </LoadedSection>
  )
}

/** `known`: a host has answered; `left`: hosts that are hidden. */
function Body({ known, shown, left }: { known: boolean; shown: Host[]; left: number }) {
  const text = useText()
  const words = text.hosts.inbox
  const [open, setOpen] = useState(false)
  const part = shown.slice(0, open ? MOST : FIRST)
  return (
    <>
      {shown.length > 0 ? (
        <HostTable label={words.title} hosts={part} />
      ) : (
        <p className="dim">{!known ? words.emptyUnknown : left > 0 ? words.allHidden : words.empty}</p>
      )}
      {shown.length > part.length ? (
        <p>
          {open ? (
            <Link className="link" to="/devices/hosts">
              {words.more(shown.length - part.length)}
            </Link>
          ) : (
            <button type="button" className="link" onClick={() => setOpen(true)}>
              {words.more(shown.length - part.length)}
            </button>
          )}
        </p>
      ) : null}
      {left > 0 ? (
        <p className="dim sm">
          {words.hidden(left)}{' '}
          <button type="button" className="link" onClick={showAll}>
            {words.showHidden}
          </button>
        </p>
      ) : null}
    </>
  )
}

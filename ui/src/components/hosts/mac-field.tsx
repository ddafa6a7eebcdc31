// A MAC address, typed or chosen from the hosts on the network.

import { useId, useMemo, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Field } from '@/components/fields'
import { Offers } from '@/components/offers'
import { useText } from '@/text'
import { addressOf, lineOf, nameOf, useAnsweringHosts, wordsOf, type Host } from './hosts'

/** Hosts that the list has at most. */
const OFFERED = 30

interface Props {
  label: ReactNode
  hint?: ReactNode
  error?: string
  value: string
  /** Only hosts that are no device. */
  strangers?: boolean
  required?: boolean
  disabled?: boolean
  onChange: (mac: string) => void
  /** A host was chosen; its address is given by `onChange` as well. */
  onChoose?: (host: Host) => void
}

export function MacField(props: Props) {
  const { label, error, value, strangers = false, required, disabled, onChange, onChoose } = props
  const text = useText()
  const list = useId()
  const { all, offered } = useOffered(value, strangers)
  const [open, setOpen] = useState(false)
  // No row is marked until an arrow is pressed, so that Enter sends the form with what was typed.
  const [at, setAt] = useState(-1)
  const shown = open && offered.length > 0
  const close = () => {
    setOpen(false)
    setAt(-1)
  }
  const choose = (host: Host | undefined) => {
    if (host) {
      onChange(host.mac)
      onChoose?.(host)
    }
    close()
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      setOpen(true)
      setAt(Math.max(0, Math.min(offered.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1))))
    } else if (shown && event.key === 'Enter' && at >= 0) choose(offered[at])
    else if (shown && event.key === 'Escape') close()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <Field
      label={label}
      hint={props.hint ?? (all.length > 0 ? text.hosts.pick.macHint : undefined)}
      error={error}
    >
      {(id, describedBy) => (
        <div className="pickone">
          <input
            id={id}
            className={error ? 'field invalid' : 'field'}
            role="combobox"
            aria-expanded={shown}
            aria-controls={list}
            aria-autocomplete="list"
            aria-activedescendant={shown && at >= 0 ? `${list}-${at}` : undefined}
            aria-invalid={error ? true : undefined}
            aria-describedby={describedBy}
            autoComplete="off"
            spellCheck={false}
            placeholder="02:00:00:00:00:0a"
            required={required}
            disabled={disabled}
            value={value}
            onChange={(event) => {
              onChange(event.target.value)
              setOpen(true)
              setAt(-1)
            }}
            onClick={() => setOpen(true)}
            onBlur={close}
            onKeyDown={press}
          />
          <Offers
            id={list}
            label={text.hosts.pick.offered}
            shown={shown}
            at={at}
            offered={offered.map((host) => ({ id: host.id, name: lineOf(host, text), host }))}
            onChoose={({ host }) => choose(host)}
          />
        </div>
      )}
    </Field>
  )
}

/** The hosts that can be chosen, and those that match what was typed. */
function useOffered(value: string, strangers: boolean) {
  const hosts = useAnsweringHosts().data?.data
  const all = useMemo(
    () => (hosts ?? []).filter((host) => !strangers || host.device_id === null),
    [hosts, strangers],
  )
  const offered = useMemo(() => {
    const typed = value.toLowerCase().split(/\s+/).filter(Boolean)
    // What is complete needs no list.
    if (all.some((host) => host.mac === value.trim().toLowerCase())) return []
    return all
      .filter((host) => {
        const said = wordsOf(host).toLowerCase()
        return typed.every((word) => said.includes(word))
      })
      .slice(0, OFFERED)
  }, [all, value])
  return { all, offered }
}

/** The name that a host sent to the DHCP server, if it may be a host name; else nothing. */
export function hostNameOf(host: Host): string {
  const sent = host.names.find((each) => each.from === 'dhcp')?.name ?? ''
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(sent) ? sent : ''
}

/** What of a host fills a form: fields that hold something already keep it. */
export function fillWith(host: Host, now: { name?: string; hostname?: string; ip?: string }) {
  return {
    name: now.name || nameOf(host),
    hostname: now.hostname || hostNameOf(host),
    ip: now.ip || (host.ips.findLast((ip) => ip.includes('.')) ?? addressOf(host) ?? ''),
  }
}

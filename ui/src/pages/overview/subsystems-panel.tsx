// The subsystems of the daemon, those with trouble first.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useVerdict } from '@/components/verdict'
import { CheckReason } from '@/components/said'
import { Loaded, Section } from '@/components/section'
import { Glyph, type State } from '@/components/state'
import { useAge } from '@/components/time'
import { useText, type Text } from '@/text'

type Observation = Schemas['Observation']

const STATES: Record<string, State> = { ok: 'ok', degraded: 'degraded', failed: 'unknown', disabled: 'idle' }
/** Those that are always shown. */
const MAIN = ['dataplane', 'dns_listener', 'wireguard', 'dhcp_server', 'storage', 'backups']

export function subsystemState(state: string): State {
  return STATES[state] ?? 'unknown'
}

/** What is shown before all are: trouble, then the main ones. */
export function shortList(all: readonly Observation[]): Observation[] {
  const trouble = all.filter((each) => each.state !== 'ok' && each.state !== 'disabled')
  const main = MAIN.flatMap((name) => all.find((each) => each.subsystem.startsWith(name)) ?? [])
  return [...new Set([...trouble, ...main])].slice(0, Math.max(6, trouble.length))
}

/** The name in words: `dns_listener tcp 0.0.0.0:53` is the DNS listener at TCP 0.0.0.0:53. */
export function subsystemName(name: string, text: Text): string {
  const [key = name, ...rest] = name.split(' ')
  const known = text.functions[key]
  const [protocol, ...where] = rest
  if (known === undefined) return name
  return [known, protocol?.toUpperCase(), ...where].filter(Boolean).join(' ')
}

export function SubsystemsPanel() {
  const text = useText()
  const [all, setAll] = useState(false)
  const query = useGet('/observer', {}, { every: 30_000 })
  const { reachable } = useVerdict()
  const words = text.overview.subsystems
  const fine = query.data?.data.filter((each) => each.state === 'ok').length
  return (
    <Section
      title={words.title}
      actions={
        <button type="button" className="link" aria-pressed={all} onClick={() => setAll(!all)}>
          {all ? words.hide : words.show}
        </button>
      }
    >
      <Loaded query={query} lines={6}>
        {(observations) => (
          <ul className={reachable ? 'rows rows--sub' : 'rows rows--sub stale'}>
            {(all ? observations : shortList(observations)).map((each) => (
              <Row key={each.subsystem} observation={each} />
            ))}
          </ul>
        )}
      </Loaded>
      {fine === undefined ? null : <p className="dim sm">{words.fine(fine)}</p>}
    </Section>
  )
}

function Row({ observation }: { observation: Observation }) {
  const text = useText()
  const words = text.overview.subsystems
  const age = useAge(observation.since)
  const word = words.states[observation.state]
  return (
    <li>
      <Glyph state={subsystemState(observation.state)} />
      <span>{subsystemName(observation.subsystem, text)}</span>
      <span className="dim sm">
        {word}
        {observation.since ? ` ${words.checks(age)}` : ''}
      </span>
      {observation.message && !(observation.state === 'ok' && text.server) ? (
        <span className="dim sm sub__message">
          <CheckReason {...observation} />
        </span>
      ) : null}
    </li>
  )
}

// The blocks, each with its effect in words, for everyone or for some.

import type { UseMutationResult } from '@tanstack/react-query'
import { call, client, type Answer, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { say, sayError } from '@/session/toasts'
import { Facts } from '@/components/facts'
import { PickOne } from '@/components/picker'
import { Loaded, Section } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'
import { scopeBlocks, scopeInput, type Blocks } from './scope'

type WebRtc = Schemas['WebRtc']
type Mode = Schemas['DnsMode']

export function Switches() {
  const text = useText()
  const { switches } = text.dns.privacy
  const [search, change] = useSearchParams()
  const scope = search.scope ?? 'all'
  const status = useGet('/privacy/status')
  const blocks = useGet('/settings/{key}', { path: { key: 'privacy.blocks' } })
  const queries = {
    classes: useGet('/privacy-classes'),
    groups: useGet('/device-groups'),
    devices: useGet('/devices'),
  }
  const classes = queries.classes.data?.data ?? []
  const groups = queries.groups.data?.data ?? []
  const devices = queries.devices.data?.data ?? []
  const own = scopeBlocks(scope, status.data?.data, blocks.data?.data.value, classes)
  return (
    <Section
      title={switches.title}
      hint={switches.hint}
      actions={
        <Link className="link" to="/policies/privacy-classes">
          {switches.classes}
        </Link>
      }
    >
      <div className="form">
        <PickOne
          label={switches.scope}
          value={scope}
          options={[
            ['all', switches.everyone],
            ...classes.map((each) => [`class:${each.id}`, switches.classOf(each.name)] as const),
            ...groups.map((each) => [`group:${each.id}`, switches.groupOf(each.name)] as const),
            ...devices.map((each) => [`device:${each.id}`, switches.deviceOf(each.name)] as const),
          ]}
          loading={Object.values(queries).some((each) => each.isPending)}
          onChange={(next) => change({ scope: next === 'all' ? undefined : next })}
        />
      </div>
      <Loaded query={status}>
        {(everyone) => (
          <>
            {own ? <BlockRows scope={scope} own={own} everyone={everyone} /> : null}
            {scope === 'all' ? <DnsModeRow mode={everyone.dns_mode} /> : null}
            {own ? <Others own={own} /> : null}
          </>
        )}
      </Loaded>
    </Section>
  )
}

type SwitchName = 'force-dns' | 'block-doh' | 'block-ipv6'

function post(name: SwitchName, enabled: boolean, scope: string) {
  const body = { enabled, scope: scopeInput(scope) }
  if (name === 'force-dns') return call(client.POST('/privacy/force-dns', { body }))
  if (name === 'block-doh') return call(client.POST('/privacy/block-doh', { body }))
  return call(client.POST('/privacy/block-ipv6', { body }))
}

interface BlockProps {
  scope: string
  own: Blocks
  everyone: Schemas['PrivacyStatus']
}

function BlockRows({ scope, own, everyone }: BlockProps) {
  const text = useText()
  const { switches } = text.dns.privacy
  const toggle = useChange((input: { name: SwitchName; on: boolean }) => post(input.name, input.on, scope))
  const webrtc = useChange((mode: WebRtc) =>
    call(client.POST('/privacy/block-webrtc', { body: { mode, scope: scopeInput(scope) } })),
  )
  const rows = [
    { name: 'force-dns', words: switches.forceDns, on: own.force_dns, wide: everyone.force_dns },
    { name: 'block-doh', words: switches.blockDoh, on: own.block_doh, wide: everyone.block_doh },
    { name: 'block-ipv6', words: switches.blockIpv6, on: own.block_ipv6, wide: everyone.block_ipv6 },
  ] as const
  return (
    <ul className="switches">
      {rows.map(({ name, words, on, wide }) => (
        <SwitchRow
          key={name}
          name={words.name}
          effect={on ? words.on : words.off}
          wider={scope !== 'all' && wide && !on ? switches.wider : undefined}
        >
          <Segmented
            label={words.name}
            value={on ? 'on' : 'off'}
            options={[
              ['off', text.common.off],
              ['on', text.common.on],
            ]}
            needs="operator"
            disabled={toggle.isPending}
            onChange={(next) => submit(toggle, { name, on: next === 'on' }, switches.done(words.name))}
          />
        </SwitchRow>
      ))}
      <SwitchRow
        name={switches.webrtc.name}
        effect={switches.webrtc[own.webrtc]}
        wider={
          scope !== 'all' && everyone.webrtc !== 'off' && own.webrtc === 'off' ? switches.wider : undefined
        }
      >
        <Segmented
          label={switches.webrtc.name}
          value={own.webrtc}
          options={Object.entries(switches.webrtc.options) as [WebRtc, string][]}
          needs="operator"
          disabled={webrtc.isPending}
          onChange={(mode) => submit(webrtc, mode, switches.done(switches.webrtc.name))}
        />
      </SwitchRow>
    </ul>
  )
}

function DnsModeRow({ mode }: { mode: Mode }) {
  const text = useText()
  const { switches } = text.dns.privacy
  const change = useChange((next: Mode) => call(client.PUT('/privacy/dns-mode', { body: { mode: next } })))
  return (
    <ul className="switches">
      <SwitchRow name={switches.dnsMode.name} effect={switches.dnsMode[mode]}>
        <Segmented
          label={switches.dnsMode.name}
          value={mode}
          options={Object.entries(switches.dnsMode.options) as [Mode, string][]}
          needs="operator"
          disabled={change.isPending}
          onChange={(next) => submit(change, next, switches.done(switches.dnsMode.name))}
        />
      </SwitchRow>
    </ul>
  )
}

function submit<I, T>(change: UseMutationResult<Answer<T>, Error, I>, input: I, done: string) {
  change.mutate(input, { onSuccess: ({ warnings }) => say(done, warnings), onError: sayError })
}

interface RowProps {
  name: string
  /** What follows from how it is now. */
  effect: string
  wider?: string
  children: React.ReactNode
}

function SwitchRow({ name, effect, wider, children }: RowProps) {
  return (
    <li>
      <div>
        <h3>{name}</h3>
        <p className="mid">
          {effect} {wider}
        </p>
      </div>
      {children}
    </li>
  )
}

/** Blocks that have no switch of their own. */
function Others({ own }: { own: Blocks }) {
  const text = useText()
  const { switches } = text.dns.privacy
  const word = (on: boolean) => (on ? switches.blocked : switches.notBlocked)
  return (
    <Facts
      className="kv"
      label={switches.others}
      facts={[
        [switches.blockDot, word(own.block_dot)],
        [switches.blockQuic, word(own.block_quic)],
        [switches.forceNtp, own.force_ntp ? text.common.yes : text.common.no],
      ]}
    />
  )
}

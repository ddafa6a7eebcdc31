// The proxies: whether each answers, and the LAN traffic that goes through them.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { isSupported } from '@/api/operations'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { LinkButton } from '@/components/link-button'
import { Facts } from '@/components/facts'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'

type Proxy = Schemas['Proxy']
type Tproxy = Schemas['TproxyStatus']

const STATES: Record<string, State> = { up: 'ok', down: 'down', disabled: 'idle' }

export function proxyState(status: string | undefined): State {
  return STATES[status ?? ''] ?? 'unknown'
}

export default function Proxies() {
  const text = useText()
  const words = text.paths.proxies
  const proxies = useGet('/proxies', {}, { every: 5000 })
  const relay = useGet('/tproxy/status', {}, { every: 5000, enabled: isSupported('GET /tproxy/status') })
  return (
    <Page
      question={words.question}
      actions={
        <LinkButton kind="primary" needs="operator" to="/paths/proxies/new">
          {words.new}
        </LinkButton>
      }
      answer={
        proxies.error ? (
          text.common.unreachable
        ) : (
          <Sentence proxies={proxies.data?.data} relay={relay.error ? undefined : relay.data?.data} />
        )
      }
    >
      <LoadedSection
        title={words.title}
        query={proxies}
        empty={<Empty command={words.emptyCommand}>{words.empty}</Empty>}
      >
        {(all) => <List proxies={all} relay={relay.data?.data} />}
      </LoadedSection>
      <LoadedSection title={words.relayTitle} hint={words.relayHint} query={relay}>
        {(status) => <RelayFacts status={status} />}
      </LoadedSection>
    </Page>
  )
}

function Sentence({ proxies, relay }: { proxies: Proxy[] | undefined; relay: Tproxy | undefined }) {
  const text = useText()
  const words = text.paths.proxies
  if (!proxies) return <>{text.common.loading}</>
  if (proxies.length === 0) return <>{words.none}</>
  const up = proxies.filter((proxy) => proxy.status === 'up').length
  return (
    <>
      {words.answer(up, proxies.length)}{' '}
      {relay === undefined
        ? null
        : relay.running
          ? words.relay(relay.connections, relay.udp_flows)
          : words.relayOff}
    </>
  )
}

export function RelayFacts({ status }: { status: Tproxy }) {
  const text = useText()
  const words = text.paths.proxies
  return (
    <Facts
      facts={[
        [
          text.paths.list.state,
          <StateWord key="state" state={status.running ? 'ok' : 'idle'}>
            {status.running ? words.running : words.notRunning}
          </StateWord>,
        ],
        [words.listen, status.listen.join(', ') || null],
        [words.mode, status.mode],
        [words.columns.connections, formatNumber(status.connections)],
        [words.columns.udp, formatNumber(status.udp_flows)],
      ]}
    />
  )
}

export function Udp({ proxy }: { proxy: Proxy }) {
  const words = useText().paths.proxies.udp
  if (!proxy.udp) return <>{words.off}</>
  return (
    <>{proxy.udp_works === true ? words.works : proxy.udp_works === false ? words.refused : words.unknown}</>
  )
}

function List({ proxies, relay }: { proxies: Proxy[]; relay: Tproxy | undefined }) {
  const text = useText()
  const { columns } = text.paths.proxies
  const trafficOf = (proxy: Proxy, show: (traffic: Tproxy['by_proxy'][number]) => string) => {
    const traffic = relay?.by_proxy.find((each) => each.proxy_id === proxy.id)
    return traffic ? show(traffic) : '-'
  }
  return (
    <Table
      rows={proxies}
      id={(proxy) => proxy.id}
      columns={[
        {
          head: columns.proxy,
          bare: true,
          cell: (proxy) => (
            <Link className="med" to={`/paths/proxies/${proxy.id}`}>
              {proxy.name}
            </Link>
          ),
        },
        {
          head: columns.state,
          cell: (proxy) => <ProxyState proxy={proxy} />,
        },
        { head: columns.address, cell: (proxy) => `${proxy.address}:${proxy.port}` },
        { head: columns.udp, cell: (proxy) => <Udp proxy={proxy} /> },
        {
          head: columns.connections,
          numeric: true,
          cell: (proxy) => trafficOf(proxy, (traffic) => formatNumber(traffic.connections)),
        },
        {
          head: columns.traffic,
          numeric: true,
          cell: (proxy) =>
            trafficOf(
              proxy,
              (traffic) => `${formatBytes(traffic.received_bytes)}, ${formatBytes(traffic.sent_bytes)}`,
            ),
        },
        {
          head: columns.failed,
          numeric: true,
          cell: (proxy) => trafficOf(proxy, (traffic) => formatNumber(traffic.failed)),
        },
      ]}
    />
  )
}

function ProxyState({ proxy }: { proxy: Proxy }) {
  const { states, latency } = useText().paths.proxies
  return (
    <TwoLines
      second={
        proxy.last_error ??
        (typeof proxy.latency_ms === 'number' ? latency(`${formatNumber(proxy.latency_ms, 1)} ms`) : '')
      }
    >
      <StateWord state={proxyState(proxy.status)}>
        {states[proxy.status ?? 'unknown'] ?? proxy.status}
      </StateWord>
    </TwoLines>
  )
}

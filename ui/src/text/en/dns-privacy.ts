import type { Schemas } from '@/api/client'

const group = (n: number) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ' ')

export const privacy = {
  label: 'Privacy',
  question: 'Does anything leak, by name or by protocol?',
  sentence: {
    unknown: 'Nothing is known: the counters of the gateway could not be read.',
    notEnforced: 'Nothing is known: nothing is enforced on this host, so nothing is counted.',
    escaped: (n: number, since: string) =>
      `${n === 1 ? '1 packet' : `${group(n)} packets`} left past the egress guard since ${since}.`,
    none: (since: string, pct: string) =>
      `No forwarded packet left past the egress guard since ${since}, observed for ${pct} of the time.`,
    partly: (since: string, pct: string) =>
      `No forwarded packet was seen to leave past the egress guard since ${since}, but the tap observed only ${pct} of the time.`,
    stopped: (n: number) =>
      n === 0
        ? 'It had nothing to stop.'
        : `${n === 1 ? '1 packet was' : `${group(n)} packets were`} stopped.`,
    covered: (isProtected: number, all: number) =>
      all === 0
        ? 'No device is known.'
        : isProtected === all
          ? `All ${group(all)} devices can query no resolver but the gateway.`
          : `${group(all - isProtected)} of ${all === 1 ? '1 device' : `${group(all)} devices`} can query other resolvers.`,
    routers: (n: number) =>
      n === 1
        ? 'Another router offers IPv6 to the network.'
        : `${group(n)} other routers offer IPv6 to the network.`,
  },
  coverage: {
    title: 'Coverage',
    hint: 'Who can resolve names past the gateway.',
    protected: 'Devices that can query no other resolver',
    exempt: 'Devices without any block',
    risk: 'Risk',
    risks: {
      low: 'low: every host is protected, unknown devices too',
      medium: 'medium: every device has blocks',
      high: 'high: some devices have no block',
    } satisfies Record<Schemas['Risk2'], string>,
    lists: 'Known public resolvers',
    listsValue: (addresses: number, domains: number) =>
      `${group(addresses)} addresses and networks, ${group(domains)} domains`,
    updated: 'Newest feed of them',
    builtin: 'built in only',
    ofAll: (n: number, all: number) => `${group(n)} of ${group(all)}`,
  },
  switches: {
    title: 'Switches',
    hint: 'What is stricter wins: a device has a block if it, a group, its class or everyone has it.',
    scope: 'For',
    everyone: 'everyone, unknown devices too',
    classOf: (name: string) => `privacy class ${name}`,
    groupOf: (name: string) => `group ${name}`,
    deviceOf: (name: string) => `device ${name}`,
    wider: 'Also set for everyone.',
    done: (name: string) => `${name} is changed.`,
    classes: 'Privacy classes',
    forceDns: {
      name: 'Force DNS',
      on: 'The gateway answers plain DNS queries to other resolvers. DNS over TLS and QUIC to them is rejected.',
      off: 'Programs can query any resolver. Its answers pass the filter by.',
    },
    blockDoh: {
      name: 'Block DNS over HTTPS',
      on: 'Known public resolvers cannot be reached over HTTPS, neither by name nor by address.',
      off: 'Browsers can resolve names over HTTPS at any resolver, past the filter.',
    },
    blockIpv6: {
      name: 'Block IPv6',
      on: 'No IPv6 leaves for the internet, none inside IPv4 either, and AAAA records are removed.',
      off: 'IPv6 goes where the policy of the device sends it.',
    },
    webrtc: {
      name: 'WebRTC (STUN and TURN)',
      off: 'Browsers can learn the public address of an uplink by STUN, and reveal it.',
      tunnel: 'STUN goes only where the policy of the device sends it, never by the default route.',
      block: 'STUN and TURN are dropped. Calls in the browser may fail.',
      options: { off: 'Off', tunnel: 'Tunnel', block: 'Block' },
    },
    dnsMode: {
      name: 'DNS mode',
      off: 'Each client chooses its resolver; nothing is enforced for any device.',
      device: 'Enforced for the devices whose privacy class requires it.',
      system: 'Enforced for all, the gateway itself included.',
      options: { off: 'Off', device: 'By device', system: 'All' },
    },
    others: 'Further blocks of this scope',
    blockDot: 'DNS over TLS and QUIC',
    blockQuic: 'QUIC',
    forceNtp: 'NTP answered by the gateway',
    blocked: 'blocked',
    notBlocked: 'not blocked',
  },
  monitor: {
    title: 'Leak monitor',
    hint: (since: string, pct: string) => `Packets since ${since}, observed ${pct} of the time.`,
    columns: {
      policy: 'Policy',
      escaped: 'Escaped',
      wrongEgress: 'Guard drops',
      dns: 'Other DNS',
      doh: 'DoH',
      stun: 'STUN',
      ipv6: 'IPv6',
      quic: 'QUIC',
      discovery: 'Discovery',
      ntp: 'NTP',
      bytes: 'Bytes',
    },
    noPolicy: 'no policy',
    legend:
      'Escaped packets left past the guard: any is a leak. All other columns were stopped, NTP was answered by the gateway.',
    empty: 'Nothing was counted yet.',
    events: 'Last events',
    eventsHint: 'Drops of the egress guard, and a sample of the first packets of blocked flows.',
    noEvents: 'No packet was dropped yet.',
    eventColumns: {
      device: 'Device',
      policy: 'Policy',
      from: 'From',
      to: 'To',
      protocol: 'Protocol',
      action: 'Action',
      reason: 'Reason',
      size: 'Bytes',
    },
    guard: 'egress guard',
    routers: 'Foreign routers',
    routersHint: 'Hosts can send IPv6 through them, past the gateway.',
    noRouters: 'No other router announces itself on the LAN.',
    routerColumns: {
      address: 'Router',
      interface: 'Interface',
      prefixes: 'Prefixes',
      seen: 'Last seen',
      until: 'Used until',
    },
  },
  check: {
    title: 'Leak check',
    hint: 'Sends packets as a device would and watches at each interface where they leave. No third party sees them.',
    as: 'As',
    stranger: 'a host that the gateway does not know',
    checks: 'Checks',
    all: 'Every check',
    names: {
      dns: 'DNS',
      ipv4: 'IPv4',
      ipv6: 'IPv6',
      webrtc: 'WebRTC',
      doh: 'DNS over HTTPS',
      quic: 'QUIC',
      route: 'Route',
    } satisfies Record<Schemas['Check2'], string>,
    run: 'Run leak check',
    running: (n: number, seconds: number) =>
      `${n === 1 ? '1 check is' : `${n} checks are`} running, ${seconds} s.`,
    verdicts: {
      pass: 'pass',
      fail: 'fail',
      inconclusive: 'inconclusive',
    } satisfies Record<Schemas['LeakVerdict'], string>,
    result: (verdict: string, subject: string, passed: number, all: number) =>
      `${verdict === 'pass' ? 'Every probe went where it may' : verdict === 'fail' ? 'Leak' : 'Inconclusive'}: ${passed} of ${all} checks passed for ${subject}.`,
    columns: {
      check: 'Check',
      result: 'Result',
      expected: 'Expected',
      observed: 'Observed',
      packets: 'Packets left by',
      exit: 'Exit address',
    },
    nonePackets: 'none left',
    risks: 'What the check cannot rule out',
    noRisks: 'The check names no remaining risk.',
    at: (time: string) => `Checked ${time}.`,
    empty: 'No check was run in this tab.',
    command: 'gateway-ctl leak-check',
  },
}

import type { Schemas } from '@/api/client'

type Pair = readonly [label: string, hint: string]
const count = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${n} ${many}`)

/** Texts of splitting. */
export const pathsSplitting = {
  question: 'How is traffic shared among the tunnels?',
  off: 'No applied policy splits its traffic.',
  answer: (policies: number, flows: number) =>
    `${count(policies, 'policy shares', 'policies share')} ${count(flows, 'flow', 'flows')} of the last minute among tunnels.`,
  short: (tunnels: number) => `${count(tunnels, 'tunnel takes', 'tunnels take')} no new flows.`,
  all: 'Every member takes new flows.',
  pools: 'Pools',
  poolsHint: 'new flows go round by weight; a flow keeps its tunnel',
  poolsEmpty: 'A policy splits when it has splitting on and at least two tunnels as hops.',
  poolsEmptyCommand: 'gateway-ctl splitting activate --policy-id ID',
  active: 'active',
  inactive: 'not active',
  stickies: { flow: 'by flow', source: 'by device', source_dest: 'by device and destination' } as Record<
    string,
    string
  >,
  flows: (n: number) => count(n, 'flow', 'flows'),
  newFlows: (n: string) => `${n} new flows per minute`,
  columns: {
    tunnel: 'Tunnel',
    state: 'State',
    share: 'Share of flows',
    newShare: 'New flows',
    weight: 'Weight',
    flows: 'Flows',
    bytes: 'Bytes',
    rtt: 'Round trip',
  },
  states: { active: 'takes new flows', draining: 'draining', down: 'down' } satisfies Record<
    Schemas['EndpointState'],
    string
  >,
  noFlows: 'no flows',
  activation: 'Splitting of policies',
  activationHint: 'takes effect at once',
  activate: 'Split',
  deactivate: 'Stop splitting',
  isOn: (name: string) => `${name} splits now.`,
  isOff: (name: string) => `${name} splits no longer.`,
  splits: 'splits',
  splitsNot: 'does not split',
  noCandidates: 'No policy has two tunnels as hops.',
  endpoints: 'Endpoints',
  endpointsHint: 'set the weight of a tunnel in pools, or take it out',
  endpointsEmpty: 'Without endpoints each tunnel takes part with its own weight.',
  endpointNew: 'New endpoint',
  everyPolicy: 'every policy',
  endpointDelete: (name: string) => `Remove the endpoint of ${name}`,
  endpointDeleted: (name: string) => `The endpoint of ${name} is removed.`,
  endpointFields: {
    tunnel: 'Tunnel',
    policy_id: 'Policy',
    weight: ['Weight', '1 to 16'],
    enabled: ['Takes new flows', 'off: flows that it has go on for half a minute'],
  } satisfies Record<string, string | Pair>,
  transport: 'Transport',
  transportFacts: {
    mode: 'Unit',
    protocols: 'Protocols',
    quic: 'QUIC',
    mtu: 'Largest packet',
    mss: 'MSS is clamped',
    drain: 'Draining',
  },
  modes: { flow: 'whole flows' } as Record<string, string>,
  quics: { steer: 'distributed like other UDP', block: 'blocked' } as Record<string, string>,
  dns: 'DNS of pools',
  dnsModes: {
    shared: 'queries of LAN hosts are flows like others',
    follow_leg: 'each tunnel has its own resolvers',
  } as Record<string, string>,
  dnsColumns: { tunnel: 'Tunnel', upstreams: 'Upstreams', queries: 'Queries', failures: 'Failures' },
  dnsEmpty: 'No pool, so no tunnel has queries of its own.',
  cover: 'Cover traffic',
  coverHint: 'padding packets that blur when traffic starts and stops; upstream only',
  coverOff: 'Cover traffic is off.',
  coverOn: (overhead: string, budget: number) =>
    `Cover adds ${overhead} to user traffic, at most ${budget} %.`,
  coverColumns: {
    tunnel: 'Tunnel',
    state: 'State',
    padding: 'Padding',
    normal: 'User traffic',
    overhead: 'Overhead',
  },
  coverStates: {
    off: 'off',
    active: 'active',
    waiting: 'waiting for traffic',
    not_supported: 'not supported by this tunnel',
  } satisfies Record<Schemas['CoverState'], string>,
}

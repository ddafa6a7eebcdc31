import type { Schemas } from '@/api/client'

export const why = {
  question: (device: string) => `Why does ${device} go out this way?`,
  ladder: 'How the decision was made',
  aside: 'Actions and details',
  copyAnswer: 'Copy answer',
  askAbout: 'Ask about',
  destination: 'Destination',
  anyDestination: 'any destination',
  port: 'Port',
  protocol: 'Protocol',
  anyProtocol: 'TCP by default',
  family: 'Address family',
  bothFamilies: 'IPv4 and IPv6',
  ask: 'Ask',
  answeredAt: (time: string) => `answered ${time}`,
  at: 'As of',
  asOf: (plan: string, from: string, until: string | null) =>
    until === null
      ? `By plan ${plan}, which is in force since ${from}.`
      : `By plan ${plan}, which was in force from ${from} to ${until}.`,
  notReproduced:
    'This version of the gateway compiles another plan from the configuration of then, so it may decide otherwise.',
  decisions: { tunnel: 'Tunnel', direct: 'Direct', block: 'Blocked' } satisfies Record<
    Schemas['Decision'],
    string
  >,
  heads: { block: 'BLOCKED', direct: 'DIRECT', tunnel: 'TUNNEL', proxy: 'PROXY', local: 'LOCAL' },
  packet: 'Packet',
  fromTo: (from: string, to: string) => `from ${from} to ${to}`,
  knownAs: (name: string, mac: string) => `Known as ${name} by MAC ${mac}.`,
  notKnown: 'No device record has this address.',
  deviceFacts: (groups: string[], trust: string, status: string) =>
    `${groups.length > 0 ? `Groups ${groups.join(', ')}` : 'No group'}, trust class ${trust}, status ${status}.`,
  exception: 'Exception',
  noException: 'none active',
  exceptionFirst: 'An exception is checked before any policy.',
  takesEffect: 'It decides.',
  noEffect: 'It does not change this packet.',
  policy: 'Policy',
  firstMatch: 'lower number wins, first match decides',
  policies: 'Policies in the order of their priority',
  noPolicies: 'There is no policy.',
  matched: 'matched',
  skipped: 'skipped',
  notReached: 'not reached',
  more: (count: number) => `${count} more`,
  skippedBefore: 'do not match',
  skippedAfter: 'do not match',
  afterMatch: 'not reached: first match decides',
  show: 'Show',
  omitted: (count: number) => `${count} further policies do not match.`,
  pending: (count: number) =>
    count === 1
      ? '1 change is saved and not active. It is not in this answer.'
      : `${count} changes are saved and not active. They are not in this answer.`,
  hop: (index: number, all: number) => `Hop ${index} of ${all}`,
  usable: 'Usable',
  unusable: 'Unusable',
  failPolicy: (policy: string) => `No usable hop, policy is ${policy}`,
  failPolicies: {
    'fail-closed':
      'These packets stop here. With fail-open they would leave by the default route, in the clear.',
    'fail-degraded': 'Only another hop of the policy could carry these packets, and none is usable.',
    'fail-open': '',
  } as Record<string, string>,
  stopped: 'Stopped here, on purpose',
  stays: 'Stays in the local network',
  leaves: 'Leaves through a hop',
  leavesDirect: 'Leaves directly, in the clear',
  whenBack: (hop: string) => `When ${hop} is back`,
  twoWays: 'Two ways out',
  wayOut: 'A way out',
  fixHop: '1. Fix the hop',
  usedBy: (tunnel: string, policies: string[]) =>
    policies.length === 1
      ? `Policy ${policies[0]} uses ${tunnel}.`
      : `${policies.length} policies use ${tunnel}: ${policies.slice(0, 4).join(', ')}.`,
  allowTitle: 'Allow for a limited time',
  allowEffect: (time: string) =>
    `Goes out directly, in the clear, and counts in the verdict. Ends at ${time} by itself.`,
  allow: 'Allow for 60 min',
  capture: 'Capture this device',
  privacy: 'Privacy',
  privacyClass: 'Class',
  failPolicyLabel: 'Failure policy',
  kernel: 'Kernel',
  mark: 'Mark',
  table: 'Table',
  leg: 'Number of the egress',
  rank: 'Position of the policy',
  dropped: 'dropped at once',
  device: 'Device',
  trace: 'Assumptions and steps',
  terminal: 'Same answer in a terminal',
  copyCommand: 'Copy command',
}

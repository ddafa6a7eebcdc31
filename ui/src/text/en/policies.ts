import type { Schemas } from '@/api/client'
import type { ReactNode } from 'react'
import { policyExceptions } from './policy-exceptions'
import { policyProfiles } from './policy-profiles'
import { policyClasses } from './policy-classes'
import { policyReview } from './policy-review'
import { formatNumber } from '../format'

type Parts = ReactNode[]

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`

export const policies = {
  label: 'Policies',
  question: 'What happens if the VPN drops?',
  tabs: {
    order: 'Order',
    exceptions: 'Exceptions',
    profiles: 'Profiles',
    classes: 'Privacy classes',
    presets: 'Presets',
    matrix: 'Leak matrix',
    compiled: 'Compiled',
  },
  // The answer
  ifAllDrop: (total: number, blocked: ReactNode, direct: ReactNode): Parts =>
    total === 1
      ? blocked
        ? ['If every tunnel drops now, the only policy blocks: ', blocked, '.']
        : direct
          ? ['If every tunnel drops now, the only policy lets traffic out directly: ', direct, '.']
          : ['If every tunnel drops now, the only policy keeps its path.']
      : blocked && direct
        ? ['If every tunnel drops now, ', blocked, ' and ', direct, '.']
        : blocked
          ? ['If every tunnel drops now, ', blocked, '; none lets traffic out.']
          : direct
            ? ['If every tunnel drops now, ', direct, '; none blocks.']
            : ['If every tunnel drops now, each policy keeps a path.'],
  policiesBlock: (n: number, total: number) =>
    total === 1 ? 'its devices are cut off' : `${n} of ${total} policies ${n === 1 ? 'blocks' : 'block'}`,
  letOut: (n: number, total: number) =>
    total === 1 ? 'in the clear' : `${n} ${n === 1 ? 'lets' : 'let'} traffic out directly`,
  othersRun: (n: number) => ` ${n === 1 ? 'The other one keeps' : `The other ${n} keep`} a path.`,
  pendingMakesIt: (n: number, names: ReactNode): Parts => [
    ' Pending changes would make it ',
    n,
    ' direct: ',
    names,
    '.',
  ],
  pendingNoDirect: ' Pending changes open no direct path.',
  exceptionsDrop: (n: { direct: number; some: number; blocked: number; other: number }): string =>
    [
      n.direct > 0
        ? `${count(n.direct, 'exception lets its device', 'exceptions let their devices')} out directly`
        : '',
      n.some > 0
        ? `${count(n.some, 'exception lets some traffic of its device', 'exceptions let some traffic of their devices')} out directly`
        : '',
      n.blocked > 0 ? count(n.blocked, 'exception blocks its device', 'exceptions block their devices') : '',
      n.other > 0 ? count(n.other, 'exception keeps a path', 'exceptions keep a path') : '',
    ]
      .filter(Boolean)
      .join(', '),
  profilesDrop: (n: { blocked: number; direct: number; other: number }): string =>
    `Where no policy matches, ${[
      n.blocked > 0 ? count(n.blocked, 'profile blocks', 'profiles block') : '',
      n.direct > 0
        ? count(n.direct, 'profile lets traffic out directly', 'profiles let traffic out directly')
        : '',
      n.other > 0 ? count(n.other, 'profile keeps a path', 'profiles keep a path') : '',
    ]
      .filter(Boolean)
      .join(', ')}.`,
  noneInForce: 'No policy is active.',
  noneApplied: 'No policy is active: devices take the default route.',
  noneYet: 'There is no policy yet: devices take the default route.',
  // Order
  order: 'Order',
  orderHint: 'Lower number wins, first match decides. Alt+Up and Alt+Down move a row.',
  filter: 'Filter policies',
  onlyWhenDown: { blocked: 'blocks when all is down', direct: 'direct when all is down' } as Record<
    string,
    string
  >,
  showAll: 'Show all',
  newPolicy: 'Policy',
  newException: 'Exception',
  empty:
    'A policy says which hops the traffic of a device, a group or a network takes, and what happens when they fail.',
  nothingMatches: 'No policy matches the filter.',
  columns: {
    priority: 'Priority',
    source: 'Policy and source',
    hops: 'Hops',
    fail: 'If hops are down',
    failShort: 'If down',
    now: 'Now',
    carried: 'Carried',
  },
  drag: (name: string) => `Drag ${name}`,
  moveUp: (name: string) => `Move ${name} up`,
  moveDown: (name: string) => `Move ${name} down`,
  moreFor: (name: string) => `More for ${name}`,
  moveTo: 'Move to position…',
  moveToTitle: (name: string) => `Move ${name}`,
  position: (total: number) => `Position, 1 to ${total}`,
  move: 'Move',
  willBe: (changes: string[]) =>
    changes.length === 0 ? 'Nothing changes.' : `Priorities: ${changes.join(', ')}.`,
  toTop: 'Move to the top',
  toEnd: 'Move to the end',
  movedTo: (name: string, place: number) => `${name} is saved at position ${place}, not active yet.`,
  notMoved: (name: string) => `${name} was not moved: the gateway has another order. It is shown as it is.`,
  moveFailed: (name: string) => `${name} was not moved. The order is as before.`,
  select: 'Select',
  endSelect: 'Done',
  selectOne: (name: string) => `Select ${name}`,
  selected: (n: number) => `${n} selected`,
  blockUp: 'Up',
  blockDown: 'Down',
  enable: 'Enable',
  disable: 'Disable',
  duplicate: 'Duplicate',
  enabledSaved: (name: string) => `${name} is enabled, not active yet.`,
  disabledSaved: (name: string) => `${name} is disabled, still active until you apply.`,
  sources: {
    all: 'all',
    interface: 'interface',
    vlan: 'vlan',
    subnet: 'subnet',
    device: 'device',
    device_group: 'group',
    destination: 'destination',
    domain: 'domain',
  } satisfies Record<Schemas['SourceType'], string>,
  expiresAt: (time: string) => `expires ${time}`,
  ended: 'ended',
  noHopsClosed: 'no hops: these devices are cut off',
  noHopsOpen: 'no hops: default route',
  profileHops: (name: string) => `by profile ${name}`,
  chainHops: (name: string) => `by chain ${name}`,
  activeNow: (value: string) => `active now: ${value}`,
  noSuchHop: 'does not exist',
  failWords: {
    'fail-closed': 'fail-closed',
    'fail-degraded': 'fail-degraded',
    'fail-open': 'fail-open',
  } satisfies Record<Schemas['FailPolicy'], string>,
  failMeans: {
    'fail-closed': 'blocks',
    'fail-degraded': 'uses the hops that are left, never direct',
    'fail-open': 'lets traffic out directly',
  } satisfies Record<Schemas['FailPolicy'], string>,
  savedNotActive: 'saved, not active',
  edited: 'edited',
  off: 'off, still active',
  removed: 'deleted, still active',
  disabled: 'Disabled',
  notInKernel: 'Not in the kernel',
  noTraffic: 'No traffic',
  blockedDevices: (n: number | null) =>
    n === null ? 'Blocked' : `Blocked, ${count(n, 'device', 'devices')}`,
  directDevices: (n: number | null) => (n === null ? 'Direct' : `Direct, ${count(n, 'device', 'devices')}`),
  hopsOf: (name: string, up: number, all: number) => `${name}, ${up} of ${all} hops`,
  fallback: (n: number | null) =>
    n === null ? 'Direct, hops are down' : `Direct, ${count(n, 'device', 'devices')}, hops are down`,
  conflictKinds: {
    duplicate: (others: string) => `duplicate of ${others}`,
    shadowed: (others: string) => `shadowed by ${others}`,
    contradictory: (others: string) => `contradicts ${others}`,
    unreachable_target: () => 'target does not exist',
    loop: () => 'loop of tunnels',
  } as Record<string, (others: string) => string>,
  // One policy
  form: 'Form',
  json: 'JSON',
  formOrJson: 'View',
  create: 'New policy',
  saveNotActive: 'Save',
  savedSay: (name: string) => `${name} is saved, not active yet.`,
  backToOrder: 'Back to the order',
  deleteTitle: (name: string) => `Delete ${name}`,
  deleteMeans: (name: string) =>
    `${name} stays active until you apply. Afterwards the next policy that matches decides, else the default route.`,
  deleteAction: 'Delete policy',
  answerNow: (name: string, what: string) => `${name}: ${what}.`,
  sectionWho: 'Who and what',
  sectionWhere: 'Where to',
  sectionFail: 'If hops are down',
  sectionMore: 'More',
  priority: 'Priority',
  priorityHint: 'Lower number wins. 0 to 1 000 000.',
  sourceType: 'Applies to',
  sourceTypes: {
    all: 'Everything',
    device: 'Devices',
    device_group: 'Device groups',
    interface: 'Network interface',
    vlan: 'VLAN',
    subnet: 'Subnet of sources',
    destination: 'Destination addresses',
    domain: 'Domains',
  } satisfies Record<Schemas['SourceType'], string>,
  sourceHints: {
    interface: 'Name of the interface where traffic comes in. Several with commas.',
    vlan: '1 to 4094. Several with commas.',
    subnet: 'Such as 192.168.10.0/24. Several with commas.',
    destination: 'An address, a network or address:port. Several with commas.',
    domain:
      'example.com and all below it, =example.com only, *.example.com only below, ~expression. Several with commas.',
  } as Record<string, string>,
  sourceValue: 'Value',
  noDevices: 'No device is known yet.',
  noGroups: 'There is no device group.',
  way: 'Path',
  ways: { hops: 'Hops', profile: 'Profile', chain: 'Chain' },
  profile: 'Profile',
  chain: 'Chain',
  choose: 'Choose',
  hopUse: 'Several hops are',
  hopUses: { path: 'nested', failover: 'failover', split: 'split' },
  hopUseMeans: {
    path: 'One inside the other: each hop is reached through the one before.',
    failover: 'The first hop that works takes all traffic.',
    split: 'New connections are shared among the tunnels. A connection never moves.',
  },
  hopTypes: { vpn: 'tunnel', interface: 'uplink', proxy: 'proxy', mesh_peer: 'mesh peer' } as Record<
    string,
    string
  >,
  hopType: (n: number) => `Kind of hop ${n}`,
  hopTarget: (n: number) => `Target of hop ${n}`,
  addHop: 'Add hop',
  removeHop: (n: number) => `Remove hop ${n}`,
  hopUp: (n: number) => `Move hop ${n} up`,
  hopDown: (n: number) => `Move hop ${n} down`,
  dragHop: (n: number) => `Drag hop ${n}`,
  noHops: {
    'fail-closed': 'No hops + fail-closed = these devices are cut off.',
    'fail-degraded': 'No hops + fail-degraded = these devices are cut off.',
    'fail-open': 'No hops + fail-open = these devices take the default route.',
  } satisfies Record<Schemas['FailPolicy'], string>,
  failLabel: 'Failure policy',
  failOptions: {
    'fail-closed': 'Block (fail-closed)',
    'fail-degraded': 'Use what is left (fail-degraded)',
    'fail-open': 'Let out directly (fail-open)',
  } satisfies Record<Schemas['FailPolicy'], string>,
  failOfProfile: 'That of the profile',
  failSentences: {
    'fail-closed': 'Nothing leaves until a hop works again.',
    'fail-degraded': 'Hops that are down are skipped while a tunnel or proxy is left. Never direct.',
    'fail-open': 'Traffic leaves by the default route, in the clear.',
  } satisfies Record<Schemas['FailPolicy'], string>,
  /** After the name of the policy and a colon. */
  failSentence: {
    'fail-closed': 'if its hops are down, it blocks',
    'fail-degraded': 'if hops are down, it uses those that are left and never lets traffic out directly',
    'fail-open': 'if its hops are down, it lets traffic out directly',
  } satisfies Record<Schemas['FailPolicy'], string>,
  picture: {
    hop: 'hop',
    'fail-closed': 'stopped',
    'fail-degraded': 'next hop',
    'fail-open': 'in the clear',
  } satisfies Record<Schemas['FailPolicy'] | 'hop', string>,
  stricterClass: (name: string, fail: string) => `The privacy class ${name} makes it ${fail}.`,
  reject: 'Blocked packets',
  rejects: { unreachable: 'are answered as unreachable', drop: 'are dropped silently' } as Record<
    string,
    string
  >,
  sticky: 'Connections of a pool stay',
  stickies: {
    flow: 'each on its hop',
    source: 'together per device',
    source_dest: 'together per device and destination',
  } satisfies Record<Schemas['Sticky'], string>,
  stickyOfProfile: 'as the profile says',
  expires: 'Ends at',
  expiresHint: 'Empty: never.',
  privacyClass: 'Privacy class',
  noneChosen: 'none',
  jsonLabel: 'The policy as JSON',
  jsonHint: 'The same object as in the form, as the API takes it.',
  jsonInvalid: (message: string) => `This is no JSON: ${message}`,
  checks: 'Check by the gateway',
  checking: 'Checking',
  valid: 'The gateway would accept this.',
  preview: 'What happens',
  situations: {
    up: 'All hops work',
    first: 'First hop down',
    down: 'All tunnels down',
    boot: 'Before the plan is loaded',
  },
  compiledNow: 'Compiled with the present state of hops',
  inForce: 'In force',
  notInForce: 'This policy is not active.',
  hits: (packets: string, bytes: string) => `${packets} packets, ${bytes}`,
  // Leak matrix
  matrix: 'Leak matrix',
  matrixRunning: 'computed from the active plan',
  matrixPending: 'computed from the plan, with pending changes',
  withPending: 'With pending',
  running: 'Running',
  view: 'Plan',
  legend: {
    ok: 'through a hop',
    blocked: 'blocked',
    direct: 'direct, in the clear',
    leak: 'LEAK: direct against the policy',
  },
  states: {
    up: 'All up',
    degraded: 'First hop down',
    down: 'All down',
    flapping: 'Flapping',
    daemon_down: 'Daemon stopped',
    boot: 'Boot',
  } as Record<string, string>,
  now: 'Now',
  hopIsDown: (name: string) => `${name} down`,
  via: (name: string) => `via ${name}`,
  chosen: (name: string) => `${name}, chosen`,
  cellBlocked: 'blocked',
  cellDirect: 'direct',
  cellDIRECT: 'DIRECT',
  cellLeak: (name: string) => (name ? `LEAK: ${name}` : 'LEAK'),
  cellTitle: (dns: string, ipv6: string) => `DNS: ${dns}. IPv6: ${ipv6}.`,
  outcomes: {
    blocked: 'blocked',
    direct: 'direct',
    tunnel: 'through its hops',
    next_hop: 'through other hops',
  } satisfies Record<Schemas['Outcome'], string>,
  pendingTag: 'pending',
  matrixUnrecorded: (hosts: number, by: string) =>
    `${hosts === 1 ? '1 host' : `${formatNumber(hosts)} hosts`} without a device record: ${by}`,
  matrixEmpty: 'No policy is active, so there is nothing to compute.',
  pendingMatrixMissing: (n: number) =>
    `${count(n, 'change is', 'changes are')} saved and not in this matrix: it shows the active plan.`,
  matrixAnswer: {
    none: 'No policy leaks in any state of the tunnels.',
    low: 'Policies let traffic out directly only where you chose so.',
    high: 'At least one policy lets traffic out against its own rule.',
  } satisfies Record<Schemas['Risk'], string>,
  failMatrix: 'Fail matrix',
  failMatrixHint: 'each policy now, without its first hop, and without any hop',
  failColumns: {
    policy: 'Policy',
    hops: 'Hops',
    current: 'Now',
    first: 'First hop fails',
    all: 'All fail',
    leak: 'Can leak',
  },
  ...policyExceptions,
  ...policyProfiles,
  ...policyClasses,
  ...policyReview,
}

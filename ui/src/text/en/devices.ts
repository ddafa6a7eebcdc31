import type { Schemas } from '@/api/client'
import { formatNumber } from '../format'

/** A sentence in pieces: words, or words that lead to the devices with a decision. */
type Piece = string | readonly [words: string, decision: string]

interface Counts {
  protected: number
  through_policy: number
  blocked: number
  direct_by_exception: number
  failed_open: number
  no_policy: number
}

export const devices = {
  label: 'Devices',
  question: 'Who is on the network, and how does each leave?',
  tabs: {
    devices: 'Devices',
    groups: 'Groups',
    trustClasses: 'Trust classes',
    why: 'Why',
    dns: 'DNS activity',
    exceptions: 'Exceptions',
    reservation: 'Reservation',
  },
  answer: (known: number, counts: Counts): Piece[] => {
    const direct = counts.direct_by_exception + counts.failed_open + counts.no_policy
    return [
      known === 1 ? '1 device is known: ' : `${formatNumber(known)} devices are known: `,
      [
        counts.through_policy === 1
          ? '1 leaves through its policy'
          : `${formatNumber(counts.through_policy)} leave through their policy`,
        'tunnel',
      ],
      ', ',
      [
        counts.blocked === 1
          ? '1 is blocked on purpose'
          : `${formatNumber(counts.blocked)} are blocked on purpose`,
        'block',
      ],
      ', ',
      [direct === 1 ? '1 goes out directly' : `${formatNumber(direct)} go out directly`, 'direct'],
      '.',
    ]
  },
  answerUnknown: (known: number) =>
    known === 1
      ? '1 device is known. How it leaves is not known now.'
      : `${formatNumber(known)} devices are known. How they leave is not known now.`,
  add: 'Add device',
  addSentence: 'A device is known by its MAC address. Policies, groups and exceptions refer to it.',
  empty: 'No device is known yet. Devices without a record follow the policies for their network.',
  nothing: 'No device passes these filters.',
  clear: 'Clear the filters',
  shown: (shown: string, all: string) => (shown === all ? `${all} shown.` : `${shown} of ${all} shown.`),
  asking: 'The paths are being read.',
  pathsFailed: (message: string) => `The paths cannot be read: ${message}`,
  find: 'Name, address or tag',
  status: 'Status',
  anyStatus: 'any status',
  statuses: {
    known: 'known',
    new: 'new',
    quarantined: 'quarantined',
    blocked: 'blocked',
  } as Record<string, string>,
  statusHints: {
    known: 'It follows its policies.',
    new: 'It was seen for the first time and nobody has decided on it.',
    quarantined: 'It reaches nothing but what quarantine allows.',
    blocked: 'Nothing is forwarded for it.',
  } satisfies Record<Schemas['DeviceStatus'], string>,
  group: 'Group',
  anyGroup: 'any group',
  groups: 'Groups',
  trustClass: 'Trust class',
  anyClass: 'any trust class',
  trustClassHint: 'Without one that of its groups counts, without those standard.',
  privacyClass: 'Privacy class',
  profile: 'Route profile',
  profileHint: 'For traffic that no policy matches. It takes effect at once.',
  inherited: 'inherited',
  path: 'Current path',
  anyPath: 'any path',
  policy: 'Policy',
  anyPolicy: 'any policy',
  noPolicy: 'no policy',
  egress: 'Egress',
  anyEgress: 'any egress',
  decisions: {
    tunnel: 'through a hop',
    block: 'blocked',
    direct: 'direct',
    protected: 'hop or blocked',
    through_policy: 'through its policy',
    direct_by_exception: 'direct by exception',
    failed_open: 'direct, policy fails open',
    no_policy: 'direct, no policy',
  } as Record<string, string>,
  address: 'Address',
  mac: 'MAC address',
  macs: 'Further MAC addresses',
  macsHint: 'Another card or a randomised address of the same device, separated by commas.',
  hostname: 'Host name',
  vendor: 'Vendor',
  randomized: 'randomised MAC',
  firstSeen: 'First seen',
  lastSeen: 'Last seen',
  tags: 'Tags',
  commas: 'Separated by commas.',
  notes: 'Notes',
  noAnswer: (name: string) => `How ${name} leaves is not known yet.`,
  remove: 'Delete this device',
  removeTitle: (name: string) => `Delete ${name}?`,
  removeConsequence:
    'The record goes. The device itself then counts as unknown: policies for its network decide, and without one it goes out directly.',
  removeUsed:
    'The record goes, and what refers to it loses it. The device itself then counts as unknown: policies for its network decide, and without one it goes out directly.',
  noExceptions: 'There has been no exception for this device.',
  endedExceptions: 'Exceptions that have ended',
  began: 'Began',
  ended: 'Ended',
  dns: {
    newest: (count: number) => `The newest ${count} queries.`,
    empty:
      'This device has not asked the resolver of the gateway yet, or its privacy class keeps it out of the log.',
    time: 'Time',
    name: 'Name',
    type: 'Type',
    status: 'Result',
    by: 'By',
    elapsed: 'Time to answer',
    rules: 'Filter rules for this device',
    rulesHint: 'Rules that name it or one of its groups. Lists, and rules for all, hold for it as well.',
    noRules: 'No rule is for this device alone.',
    addRule: 'Add a rule',
  },
  services: {
    title: 'Services and safe search',
    hint: 'Each switch is a filter rule for this device, which the lists show as well.',
    blocked: 'Keep this device from',
    limits:
      'By name, for devices that ask this resolver. An app that connects by address, or by a resolver of its own, is not kept off: the page Privacy blocks such resolvers.',
    everyone: 'for all devices, by a rule without devices',
    partly: 'in part: some of its rules are missing or off',
    names: { search: 'Safe search', youtube_restricted: 'YouTube in restricted mode' } as Record<
      string,
      string
    >,
    hints: {
      search: 'Google, Bing, DuckDuckGo and Pixabay answer with filtered results.',
      youtube_restricted: 'without what YouTube holds to be for adults',
    } as Record<string, string>,
  },
  reservation: {
    hint: 'The DHCP server gives this address to no other device.',
    forMac: (mac: string) => `for ${mac}`,
    remove: 'Remove',
    removed: 'The reservation is removed.',
    noMac: 'A reservation needs a MAC address, and this device has none.',
    reserve: 'Reserve this address',
    lease: 'Leased now:',
    until: 'until',
  },
  groupList: {
    question: 'Which devices belong together?',
    answer: (groups: number, grouped: number, all: number | null) =>
      `${groups === 1 ? '1 group' : `${groups} groups`} with ${grouped}${all === null ? '' : ` of ${all}`} devices.`,
    add: 'Add group',
    addSentence: 'Policies can be for a group, and its members take their classes from it.',
    empty: 'There is no group yet. Policies can be for a group instead of single devices.',
    members: 'Members',
    color: 'Colour',
    questionOf: (name: string) => `What is in ${name}?`,
    answerOf: (count: number) => (count === 1 ? '1 device is a member.' : `${count} devices are members.`),
    remove: 'Delete this group',
    removeTitle: (name: string) => `Delete ${name}?`,
    removeConsequence:
      'The group goes, its members stay. Policies for the group no longer match them, so they may go out another way.',
  },
  classList: {
    question: 'What may each kind of device reach?',
    answer: (count: number) => (count === 1 ? '1 trust class.' : `${count} trust classes.`),
    add: 'Add trust class',
    builtin: 'built in',
    builtinHint: 'A class that came with the gateway keeps its name.',
    level: 'Level',
    levelHint: '0 for no trust, 100 for full trust.',
    lan: 'Local network',
    lanValues: { none: 'no other device', segment: 'its own segment', full: 'all of it' } as Record<
      string,
      string
    >,
    internet: 'Internet',
    internetValues: {
      none: 'none',
      policy: 'by a policy only',
      direct: 'by a policy, else directly',
    } satisfies Record<Schemas['Internet'], string>,
    internetHints: {
      none: 'Nothing is forwarded to the internet.',
      policy: 'Without a policy that matches, the device is blocked.',
      direct: 'Without a policy that matches, the device goes out directly.',
    } satisfies Record<Schemas['Internet'], string>,
    admin: 'May manage the gateway',
    adminHint: 'Opens the API, the dashboard and SSH. Enforced as soon as one device has a class that may.',
    dnsLocal: 'May resolve local names',
    dnsLocalHint: 'Names of hosts, local zones and private addresses.',
    mdns: 'May use mDNS of other segments',
    mdnsHint: 'Nothing relays mDNS between segments yet.',
    questionOf: (name: string) => `What may devices of ${name} reach?`,
    answerOf: (lan: string, internet: string) => `Local network: ${lan}. Internet: ${internet}.`,
    remove: 'Delete this trust class',
    removeTitle: (name: string) => `Delete ${name}?`,
    removeConsequence: 'The class goes. Devices and groups that name it must have another one first.',
  },
}

import type { Schemas } from '@/api/client'
import { formatNumber } from '../format'

const many = (count: number, one: string, more: string) =>
  count === 1 ? `1 ${one}` : `${formatNumber(count)} ${more}`

export const hosts = {
  tab: 'On the network',
  question: 'Which hosts are on the network, and which of them are no device?',
  answer: (all: number, strangers: number, online: number) =>
    `${many(all, 'host was', 'hosts were')} seen, ${formatNumber(online)} of them in the last minutes. ${
      strangers === 0 ? 'Each is a device.' : `${many(strangers, 'is no device', 'are no device')}.`
    }`,
  answerNone: 'No host has been seen on the network yet.',
  atLeast: (shown: number, all: number) =>
    `The ${formatNumber(shown)} seen last of ${formatNumber(all)} hosts.`,
  find: 'Name, address or vendor',
  label: 'Hosts on the network',
  shown: (shown: number, all: number) => `${formatNumber(shown)} of ${formatNumber(all)} hosts are shown.`,
  onlyStrangers: 'Only hosts that are no device',
  nothing: 'No host passes these filters.',
  empty:
    'No host has been seen yet. A host appears as soon as it sends something or has an address of the DHCP server.',
  columns: {
    host: 'Host',
    address: 'Address',
    vendor: 'Vendor',
    seen: 'Last seen',
    path: 'Way to the internet',
    rate: 'Transfers now',
    device: 'Device',
    actions: 'Actions',
  },
  online: 'online',
  unconfirmed: 'never answered',
  unconfirmedHint:
    'It has not answered the gateway yet, so its address may be forged. No number of the verdict counts it.',
  randomized: 'random MAC',
  randomizedHint:
    'Software made this address up, as telephones do. It may change, and the host is then a new one.',
  unknown: 'unknown',
  noAddress: 'no address known',
  notForwarded: 'not forwarded',
  notForwardedHint: 'The gateway forwards nothing from this interface to the internet.',
  treatments: {
    through_policy: 'through a policy',
    blocked: 'blocked',
    direct_by_exception: 'direct, by an exception',
    failed_open: 'direct, policy fails open',
    no_policy: 'direct, no policy',
  } satisfies Record<Schemas['Treatment'], string>,
  firstSeen: 'First seen',
  lastSeen: 'Last seen',
  mac: 'MAC address',
  addresses: 'Addresses',
  names: 'Names',
  nameFrom: {
    dns: 'own zone or reservation',
    dhcp: 'DHCP',
    mdns: 'multicast DNS',
    ssdp: 'SSDP',
  } satisfies Record<Schemas['NameSource'], string>,
  namesHint: 'A host can give itself any name, except those of own zones and reservations.',
  vendor: 'Vendor',
  vendorUnknown: 'unknown: the address is random or not assigned',
  vendorClass: 'Vendor class (DHCP)',
  interface: 'Interface',
  answers: 'Answers the gateway',
  state: 'Now',
  offline: 'not seen for more than four minutes',
  way: 'Way to the internet',
  rate: 'Transfers now',
  receives: (rate: string) => `receives ${rate}`,
  sends: (rate: string) => `sends ${rate}`,
  rateHint:
    'Mean of the last five seconds, at the interface of the gateway. With very much traffic it is an estimate.',
  rateUnknown:
    'Not measured: the host is not there, has never answered, or its network card forwards by itself (XDP).',
  noDevice: 'no device',
  hostQuestion: (name: string) => `Who is ${name}?`,
  hostIsDevice: 'It is a device: ',
  hostIsNone: 'It is no device yet. Only rules for its network and for hosts that are no device hold for it.',
  gone: 'This host is not on the list any more. It was forgotten, or not seen for long.',
  toList: 'Hosts on the network',
  ofDevice: 'As the network sees it',
  ofDeviceHint: 'Hosts with a MAC address of this device.',
  ofDeviceNone: 'No host with a MAC address of this device has been seen.',
  ofDeviceNoMac: 'This device has no MAC address, so it is not known which host it is.',
  inbox: {
    title: 'Hosts without a decision',
    titleOf: (count: number) =>
      count === 1 ? '1 host without a decision' : `${formatNumber(count)} hosts without a decision`,
    all: 'All hosts',
    hint: {
      direct: 'They are no device. Where no policy is for their network they leave directly.',
      blocked: 'They are no device, and do not reach the internet.',
      quarantine: 'They are no device, and reach the gateway only.',
    },
    empty: 'Every host that has answered the gateway is a device.',
    emptyUnknown: 'No host has answered the gateway yet, so it is not known who is there.',
    more: (count: number) => (count === 1 ? '1 more host' : `${formatNumber(count)} more hosts`),
    hidden: (count: number) =>
      count === 1
        ? '1 host is hidden in this browser.'
        : `${formatNumber(count)} hosts are hidden in this browser.`,
    showHidden: 'Show them',
    allHidden: 'All others are devices.',
  },
  adopt: 'Add as device',
  adoptNamed: 'Add with a name',
  quarantine: 'Quarantine',
  block: 'Block',
  hide: 'Hide in this browser',
  unhide: 'Show in the overview again',
  forget: 'Forget',
  actionsFor: (name: string) => `Actions for ${name}`,
  dialog: {
    adopt: (name: string) => `Add ${name} as a device`,
    quarantine: (name: string) => `Put ${name} in quarantine`,
    block: (name: string) => `Block ${name}`,
    means: {
      adopt: 'It becomes a device with this name. Policies, groups and exceptions can then be for it.',
      quarantine:
        'It becomes a device in quarantine: it reaches the gateway, and neither the internet nor other networks. Hosts of its own network still reach it.',
      block:
        'It becomes a device that is blocked: the gateway forwards nothing of it. If it is the machine that you sit at, you lose the internet.',
    },
    name: 'Name',
    trustClass: 'Trust class',
    standard: 'none of its own',
  },
  adopted: (name: string) => `${name} is a device now.`,
  quarantined: (name: string) => `${name} is in quarantine now.`,
  blockedNow: (name: string) => `${name} is blocked now.`,
  forgotten: (name: string) => `${name} is forgotten. If it is still there, it appears again as new.`,
  stranger: {
    label: 'Hosts that are no device',
    options: {
      direct: 'Direct',
      blocked: 'Blocked',
      quarantine: 'Quarantine',
      policy: 'By a policy',
    },
    means: {
      direct:
        'Policies for their network and for all traffic hold for them. Where there is none, they leave directly, without a tunnel.',
      blocked:
        'They do not reach the internet, whatever policies there are, and names of the internet are not resolved for them. They reach the gateway and the LAN.',
      quarantine:
        'They reach neither the internet nor other networks, only the gateway. Names of the internet are not resolved for them.',
      policy:
        'A policy for all traffic, or for their interface, holds for them as for every host. Where there is none, they leave directly.',
    },
    write: 'Write a policy for all traffic',
    written: 'It is this one: ',
    saved: 'It holds at once.',
    unknown: 'What holds for them is not known: the setting cannot be read.',
  },
  pick: {
    label: 'Or a host that is no device yet',
    hint: 'It becomes a device, and is chosen.',
    none: 'choose',
    name: 'Name of the device',
    mac: (name: string, address: string) => `${name}, ${address}`,
    offered: 'Hosts on the network',
    macHint: 'Choose a host from the list by its name, address or vendor, or type a MAC address.',
    group: (name: string) => `${name} (no device yet)`,
  },
  share: {
    chip: (covered: number, total: number) => `${covered} of ${total} hosts`,
    show: (open: number) =>
      open === 1 ? 'Show the host that leaves directly' : `Show the ${open} hosts that leave directly`,
    bar: (covered: number, total: number) => `Covered: ${covered} of ${total} hosts`,
  },
  first: {
    title: 'Names and hosts',
    hint: 'DNS, filter, unknown hosts',
    lead: 'What answers names, what is filtered, and what becomes of hosts without a name.',
    names: 'Who resolves names',
    namesHint: 'Without a resolver no device on the LAN can open a page by its name.',
    keep: (servers: string) => `Keep what is set: ${servers}`,
    keepNone: 'None for now: names of the internet are not resolved',
    preset: (name: string) => `${name}, encrypted (DNS over TLS)`,
    own: 'Other addresses, not encrypted',
    ownAddresses: 'Addresses',
    ownHint:
      'IP addresses of resolvers, separated by commas. Their operator and everyone on the way can read the names.',
    other: 'Another resolver',
    filterings: {
      none: 'filters nothing',
      malware: 'blocks known malware',
      ads: 'blocks ads and trackers',
      family: 'blocks ads, trackers and adult pages',
    } satisfies Record<Schemas['Filtering'], string>,
    filter: 'Filter list',
    useList: 'Block ads and trackers by a list from the first minute',
    useListHint:
      'The gateway downloads it from this address and renews it. Names on it are not resolved for any device; the query log says which.',
    list: 'List',
    lists: {
      hageziLight: 'HaGeZi Light: ads and trackers, seldom breaks a page',
      hageziNormal: 'HaGeZi Normal: stricter',
      stevenBlack: 'StevenBlack: a unified hosts file',
    },
    listThere: (count: number) =>
      count === 1 ? '1 list is subscribed already.' : `${count} lists are subscribed already.`,
    filteringOff: 'The filter is off; it is turned on with the list.',
    strangers: 'Hosts without a name',
    strangersHint:
      'The gateway calls a host with a name a device. Others are listed in the overview, where each can be added.',
    policyLater: 'The last step of the setup leads to its form, when there is a way that it can name.',
    policyTitle: 'Hosts without a name',
    policyHint:
      'You chose that a policy decides on them. It is not written yet: until then they leave directly.',
    finishToPolicy: 'Finish, and write the policy',
    alsoYou: 'This holds for the machine that you sit at, too, until it is a device.',
    save: 'Save and continue',
    saved: 'Names and hosts are set.',
    summary: (resolver: string, list: boolean, strangers: string) =>
      `${resolver}, ${list ? 'filter list' : 'no new list'}, unknown hosts: ${strangers}`,
    unchanged: 'unchanged',
  },
}

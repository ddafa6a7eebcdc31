import type { Schemas } from '@/api/client'

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`

/** Texts of profiles and chains. */
export const policyProfiles = {
  profileQuestion: 'Which paths are ready to use?',
  profileAnswer: (profiles: number, chains: number) =>
    `${count(profiles, 'profile', 'profiles')} and ${count(chains, 'chain', 'chains')} are ready for policies, devices and groups.`,
  profiles: 'Profiles',
  profilesHint: 'Hops with their failure policy and DNS, for several policies, devices and groups.',
  profilesEmpty: 'A profile is a list of hops that several policies, devices and groups share.',
  newProfile: 'Profile',
  createProfile: 'New profile',
  chains: 'Chains',
  chainsHint: 'Two to four hops, each reached through the one before.',
  chainsEmpty: 'A chain is a named path of two to four hops, entry first.',
  newChain: 'Chain',
  createChain: 'New chain',
  dns: 'DNS',
  dnsModes: {
    inherit: 'as for everything else',
    tunnel: 'name servers of the tunnel',
    custom: 'own upstreams',
  } satisfies Record<Schemas['ProfileDnsMode'], string>,
  upstreams: 'Upstreams',
  upstreamsHint: 'One each line: an address, a name or an https:// URL.',
  mtu: 'MTU',
  mtuHint: 'Bytes of a packet. Empty: as the hops need.',
  status: 'Status',
  chainStatus: {
    up: 'Up',
    down: 'Down',
    degraded: 'Degraded',
    disabled: 'Disabled',
    unknown: 'Unknown',
  } satisfies Record<Schemas['ChainStatus'], string>,
  effectiveMtu: 'Effective MTU',
  deleteProfileMeans: 'What names this profile loses its hops: its failure policy applies.',
  deleteChainMeans: 'What names this chain loses its hops: its failure policy applies.',
  deleteProfile: 'Delete profile',
  deleteChain: 'Delete chain',
}

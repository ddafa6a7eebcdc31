import type { Schemas } from '@/api/client'

type Pair = [label: string, hint: string]

export const mesh = {
  tab: 'Mesh',
  question: 'Which phones and laptops are in the mesh of this gateway?',
  off: 'None: the coordinator of the mesh is off.',
  sentence: (online: number, total: number) =>
    total === 0 ? 'None so far.' : `${online} of ${total} are connected.`,
  coordinator: 'Coordinator',
  state: 'State',
  states: {
    down: 'off',
    connecting: 'opening its listeners',
    up: 'serves its nodes',
    needs_login: 'waits for a login',
    needs_approval: 'waits for an approval',
    error: 'fails',
  } satisfies Record<Schemas['MeshState'], string>,
  membership: {
    title: 'Membership',
    states: {
      down: 'off',
      connecting: 'connecting to the coordinator',
      up: 'follows the map',
      needs_login: 'not admitted: register again, or log in',
      needs_approval: 'waits for an approval',
      error: 'does not follow the map',
    } satisfies Record<Schemas['MeshState'], string>,
    coordinator: 'Coordinator',
    login: 'Log in at',
    own: 'This gateway',
    relay: 'Relay',
    none: 'none',
    off: 'The membership of this gateway is off.',
    empty: 'The map has no other nodes.',
    path: 'Path',
    paths: { direct: 'direct', relay: 'by the relay', idle: 'no packets' } satisfies Record<
      Schemas['Connection'],
      string
    >,
  },
  url: 'Address for clients',
  faults: 'Faults',
  settings: 'Its settings are mesh.coordinator.*',
  peers: 'Peers',
  empty: 'No peer has joined. Create a key, and join a phone or a laptop with a stock Tailscale client.',
  columns: { peer: 'Peer', state: 'State', routes: 'Routes', expiry: 'Key ends' },
  online: 'connected',
  offline: 'away',
  never: 'never',
  waiting: (count: number) => `${count} not approved`,
  actionsFor: (name: string) => `Actions for ${name}`,
  remove: 'Remove',
  removeTitle: (name: string) => `Remove ${name} from the mesh?`,
  removeConsequence:
    'It loses the coordinator, the relay and all peers at once. It comes back with a new key only.',
  routes: {
    title: 'Approve routes',
    label: (name: string) => `Prefixes that ${name} may route`,
    hint: '0.0.0.0/0 and ::/0 make it an exit for all traffic of other peers.',
    approve: 'Save',
    done: (name: string) => `Routes of ${name} saved.`,
  },
  key: {
    title: 'Add a peer',
    create: 'Create a key',
    once: 'This is shown once. The gateway keeps a hash of the key only.',
    host: 'On a host with the Tailscale client:',
    copyCommand: 'Copy the command',
    phone:
      'On a phone, enter the server in the account settings of the app, and the key that the QR code has:',
    server: 'Server',
    expires: 'Registers peers until',
    qr: 'QR code of the key',
    fields: {
      reusable: ['More than one peer', 'The key stays valid after the first peer has joined.'],
      ephemeral: ['Remove peers that are gone', 'For machines that come and go.'],
      expires_in: ['Valid for, s', 'Within this time peers join with it.'],
      tags: ['Tags', 'One on each line, such as tag:server. The own key of such a peer does not end.'],
      usage_limit: ['Number of peers', '0 is any number.'],
    } satisfies Record<string, string | Pair>,
  },
}

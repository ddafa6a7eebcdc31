import type { Schemas } from '@/api/client'

/** What a rule means, with its threshold and the time of its window. */
type Meaning = (threshold: number, window: string) => string

type Pair = [label: string, hint: string]

export const alerts = {
  question: 'What needs attention?',
  /** Open alerts that no other one explains, and those that they explain. */
  sentence: (open: number, consequences: number, acknowledged: number) => {
    if (open === 0) return 'Nothing: no alert is open.'
    const first = open === 1 ? '1 alert is open' : `${open} alerts are open`
    const behind =
      consequences === 0
        ? ''
        : consequences === 1
          ? ', with 1 consequence'
          : `, with ${consequences} consequences`
    const seen =
      acknowledged === 0
        ? ''
        : acknowledged === 1
          ? ' 1 is acknowledged.'
          : ` ${acknowledged} are acknowledged.`
    return `${first}${behind}.${seen}`
  },
  open: 'Open',
  openHint: 'Grouped by their cause. What follows from another alert is not sent.',
  none: 'No alert is open.',
  noneResolved: 'No alert was resolved in the last 30 days.',
  consequences: (count: number) => (count === 1 ? '1 consequence' : `${count} consequences`),
  acknowledge: 'Acknowledge',
  resolve: 'Resolve',
  acknowledged: (title: string) => `${title}: acknowledged.`,
  resolved: (title: string) => `${title}: resolved.`,
  acknowledgedBy: (name: string, time: string) => `Acknowledged by ${name}, ${time}`,
  mute: 'Mute',
  muteFor: (time: string) => `for ${time}`,
  muted: (title: string, until: string) => `${title}: no notifications until ${until}.`,
  mutedBy: (name: string, until: string) => `Muted by ${name} until ${until}`,
  unmute: 'Unmute',
  unmuted: (title: string) => `${title}: notifications are sent again.`,
  since: (age: string) => `for ${age}`,
  times: (count: number) => `${count} times`,
  rulesQuestion: 'What raises an alert?',
  resolvedTitle: 'Resolved',
  resolvedHint: 'Of the last 30 days, newest first.',
  alert: 'Alert',
  started: 'Started',
  ended: 'Ended',
  endedBy: 'By',
  byItself: 'itself',
  count: 'Times',
  older: 'Older',
  newest: 'Newest',
  lastFired: 'Fired last',
  never: 'not in 30 days',
  stays: 'It stays until a person resolves it.',
  returns: (time: string) => `If it returns within ${time}, it is the same alert.`,
  scoped: (devices: number, groups: number) =>
    `Only for ${[devices > 0 ? `${devices} devices` : '', groups > 0 ? `${groups} groups` : ''].filter(Boolean).join(' and ')}.`,
  test: 'Send a test',
  delivered: (ms: number) => `Delivered in ${ms} ms.`,
  notDelivered: (error: string) => `Not delivered: ${error}`,
  receivers: {
    tab: 'Alert receivers',
    question: 'Where are alerts sent?',
    sentence: (on: string[]) => (on.length === 0 ? 'Nowhere: no receiver is on.' : `To: ${on.join(', ')}.`),
    webhook: 'Webhook',
    webhookHint: 'The default receiver. A rule may have another one.',
    mail: 'Mail',
    mailHint: 'One mail to all recipients, over an encrypted connection only.',
    mqtt: 'MQTT',
    mqttHint: 'States of tunnels, uplinks and alerts, which Home Assistant discovers.',
    testHint: 'The test goes by what is saved.',
    securities: { starttls: 'STARTTLS, usual at port 587', tls: 'TLS from the start, usual at port 465' },
    webhookFields: {
      enabled: 'Send alerts to this address',
      url: 'Address',
      format: 'Format',
      min_severity: 'From severity',
      secret: ['Secret', 'Signs the messages.'],
      token: ['Token', 'Takes the place of {token} in the address, or is sent as a bearer token.'],
      timeout_sec: 'Timeout, s',
      retries: 'Retries',
      allow_private: 'The receiver may be in a private network',
      egress: ['Egress', 'auto, or the name of a tunnel or of an uplink. While it is down, nothing is sent.'],
      ca_certificate: ['Authorities', 'Certificates in PEM, instead of those of the system.'],
    } satisfies Record<string, string | Pair>,
    mailFields: {
      enabled: 'Send alerts by mail',
      host: 'Mail server',
      port: 'Port',
      security: 'Encryption',
      min_severity: 'From severity',
      username: ['User name', 'Empty if the server needs no sign-in.'],
      password: 'Password',
      from: 'Sender',
      to: ['Recipients', 'One address a line.'],
      timeout_sec: 'Timeout, s',
      retries: 'Retries',
      egress: ['Egress', 'auto, or the name of a tunnel or of an uplink. While it is down, nothing is sent.'],
      ca_certificate: ['Authorities', 'Certificates in PEM, instead of those of the system.'],
    } satisfies Record<string, string | Pair>,
    mqttFields: {
      enabled: 'Publish states at this broker',
      host: 'Broker',
      port: ['Port', 'Usually 1883, or 8883 with TLS.'],
      tls: 'TLS',
      username: ['User name', 'Empty if the broker needs no sign-in.'],
      password: 'Password',
      topic_prefix: 'First level of the topics of states',
      discovery_prefix: ['First level of discovery', 'As Home Assistant has it.'],
      egress: ['Egress', 'auto, or the name of a tunnel or of an uplink. While it is down, nothing is sent.'],
      ca_certificate: ['Authorities', 'Certificates in PEM, instead of those of the system.'],
    } satisfies Record<string, string | Pair>,
  },
  severities: { info: 'Info', warning: 'Warning', critical: 'Critical' } satisfies Record<
    Schemas['AlertWebhook']['min_severity'],
    string
  >,
  kinds: {
    tunnel_down: ['Tunnel down', () => 'A tunnel that should be up is down.'],
    tunnel_flapping: ['Tunnel flapping', (n, w) => `A tunnel went down ${n} times in ${w}.`],
    handshake_stale: ['Handshake stale', (n) => `The last handshake of a tunnel is older than ${n} s.`],
    policy_fallback: [
      'Policy on its fallback',
      (_, w) => `A policy has sent traffic by another way than its first for ${w}.`,
    ],
    policy_blocked: [
      'Policy blocks',
      (_, w) => `A policy has blocked for ${w}, because none of its hops is available.`,
    ],
    leak_detected: ['Leak', () => 'Packets left past the egress guard.'],
    dns_bypass_attempt: ['Resolver evaded', (n, w) => `A device asked other resolvers ${n} times in ${w}.`],
    wan_down: ['Uplink down', () => 'An uplink reaches nothing.'],
    wan_degraded: [
      'Uplink degraded',
      (_, w) => `An uplink has lost or delayed more than its limits for ${w}.`,
    ],
    wan_failover: ['Uplink changed', () => 'Traffic moved to another uplink.'],
    wan_flapping: ['Uplink flapping', () => 'An uplink comes and goes, and was set aside.'],
    captive_portal: ['Captive portal', () => 'An uplink answers with a sign-in page.'],
    dns_upstream_down: [
      'Resolver unreachable',
      () => 'A resolver that queries are forwarded to does not answer.',
    ],
    blocklist_update_failed: [
      'List not updated',
      (n) => `A list or feed could not be fetched ${n} times in a row.`,
    ],
    new_device: ['New device', () => 'A device was seen for the first time.'],
    device_offline: ['Device offline', (_, w) => `A known device has been offline for ${w}.`],
    device_quarantined: ['Device quarantined', () => 'A device was put into quarantine.'],
    rogue_dhcp: ['Foreign DHCP server', () => 'Another DHCP server answers on the LAN.'],
    rogue_ra: ['Foreign router', () => 'Another router announces itself on the LAN.'],
    ip_conflict: ['Address in use twice', () => 'Two hosts use one address.'],
    dhcp_pool_exhausted: ['Addresses run out', (n) => `${n} % of the DHCP range are in use.`],
    exception_started: ['Exception started', () => 'A device is excepted from its policies.'],
    exception_expiring: ['Exception ends soon', (n) => `An exception ends in less than ${n} s.`],
    drift_detected: [
      'Drift',
      (n) => `The kernel differed from the plan in at least ${n} items, and was corrected.`,
    ],
    apply_failed: [
      'Apply failed',
      () => 'A plan could not be put into the kernel. The one before is in force.',
    ],
    rollback_performed: ['Rolled back', () => 'The configuration went back to an earlier state.'],
    backup_failed: ['Backup failed', (n) => `A backup could not be made or stored ${n} times in a row.`],
    node_unreachable: ['Peer unreachable', (n) => `A peer of the federation has not answered for ${n} s.`],
    sync_failed: [
      'Synchronisation failed',
      (n) => `Objects could not be exchanged with a peer ${n} times in a row.`,
    ],
    login_lockout: ['Sign-in locked', () => 'Sign-in is locked after too many failures.'],
    key_created: ['Key created', () => 'An API key was made.'],
    deadman_warning: ['Dead-man switch', (n) => `${n} % of the time of the dead-man switch have passed.`],
    storage_low: ['Storage low', (n) => `${n} % of the disk of the gateway are in use.`],
    cpu_temp_high: ['Processor hot', (n, w) => `The processor has had ${n} °C or more for ${w}.`],
    cert_expiring: ['Certificate expires', (n) => `A certificate in use ends in ${n} days or less.`],
    secrets_decrypt_failed: ['Secrets unreadable', () => 'Stored secrets cannot be opened.'],
    bluetooth_ids: [
      'Suspicious Bluetooth device',
      (n, w) => `An unknown Bluetooth device was suspicious ${n} times in ${w}.`,
    ],
    conntrack_full: [
      'Too many connections',
      () => 'The connection table filled up, and the largest holders lost entries.',
    ],
    clock_unsynchronised: ['Clock not synchronised', (_, w) => `No time server has set the clock for ${w}.`],
    encrypted_storage_locked: [
      'Encrypted storage locked',
      () => 'The encrypted storage is not open, so records that live in it are not stored.',
    ],
  } satisfies Record<Schemas['AlertKind'], [name: string, means: Meaning]> as Record<
    Schemas['AlertKind'],
    [name: string, means: Meaning]
  >,
}

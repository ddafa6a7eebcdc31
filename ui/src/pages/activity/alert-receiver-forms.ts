// The fields of the receivers of alerts, and what is sent of them. A secret that is not typed is kept; null removes it.

import type { Schemas } from '@/api/client'
import type { Fields } from '@/components/draft'
import { pick, resource } from '@/components/resource'

export const FORMATS = ['alertmanager', 'alertmanager-v2', 'json', 'ntfy', 'slack'] as const
export const SECURITIES = ['starttls', 'tls'] as const

type Webhook = Omit<Schemas['AlertWebhook'], 'has_secret' | 'has_token'>
type Mail = Omit<Schemas['AlertEmail'], 'has_password'>
type Broker = Omit<Schemas['AlertMqtt'], 'has_password'>

/** A secret that is typed; empty keeps what is stored, null removes it. */
type Secret = string | null
const KEPT: Secret = '' as Secret

const WEBHOOK: Webhook = {
  enabled: false,
  url: '',
  format: 'alertmanager',
  min_severity: 'info',
  timeout_sec: 10,
  retries: 5,
  ca_certificate: '',
  allow_private: false,
  egress: 'auto',
}

const MAIL: Mail = {
  enabled: false,
  host: '',
  port: 587,
  security: 'starttls',
  ca_certificate: '',
  username: '',
  from: '',
  to: [],
  min_severity: 'warning',
  timeout_sec: 30,
  retries: 5,
  egress: 'auto',
}

const BROKER: Broker = {
  enabled: false,
  host: '',
  port: 1883,
  tls: false,
  ca_certificate: '',
  username: '',
  topic_prefix: 'gateway',
  discovery_prefix: 'homeassistant',
  egress: 'auto',
}

export const webhook = resource('/alerts/webhook', {
  key: 'alert-webhook',
  secrets: ['secret', 'token'],
  fields: (stored: Schemas['AlertWebhook'] | null) => ({
    ...pick(stored, WEBHOOK),
    secret: KEPT,
    token: KEPT,
  }),
  body: (fields) => typed(fields, ['secret', 'token']),
})

export const mail = resource('/alerts/email', {
  key: 'alert-email',
  secrets: ['password'],
  fields: (stored: Schemas['AlertEmail'] | null) => ({ ...pick(stored, MAIL), password: KEPT }),
  body: (fields) => typed(fields, ['password']),
})

export const broker = resource('/alerts/mqtt', {
  key: 'alert-mqtt',
  secrets: ['password'],
  fields: (stored: Schemas['AlertMqtt'] | null) => ({ ...pick(stored, BROKER), password: KEPT }),
  body: (fields) => typed(fields, ['password']),
})

/** The fields without the secrets that are empty. */
export function typed(fields: Fields, secrets: readonly string[]): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => value !== '' || !secrets.includes(name)),
  )
}

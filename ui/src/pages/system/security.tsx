// What protects the gateway itself: secrets at rest, key exchange, dead-man switch, wipe.

import { isSupported } from '@/api/operations'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { LoadedSection, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { Deadman } from './deadman'
import { KeyExchange } from './key-exchange'
import { Secrets } from './secrets'
import { Wipe } from './wipe'

export default function Security() {
  const text = useText()
  const t = text.system.security
  const secrets = useGet('/secrets/encryption-status')
  const deadman = useGet('/system/deadman')
  const exchange = useGet('/pq-crypto')
  const sealed = secrets.data?.data
  return (
    <Page
      question={t.question}
      answer={
        sealed ? (
          <>
            {sealed.locked ? t.locked : t.sentence(sealed.encrypted_count, sealed.total_secrets)}{' '}
            {deadman.data
              ? deadman.data.data.enabled
                ? t.deadmanOn(deadman.data.data.hours)
                : t.deadmanOff
              : null}
          </>
        ) : (
          text.common.loading
        )
      }
    >
      <LoadedSection title={t.secrets} hint={t.secretsHint} query={secrets} lines={5}>
        {(status) => <Secrets status={status} />}
      </LoadedSection>
      <Section
        title={t.tls}
        actions={
          <Link to="/system/settings" search={{ find: 'tls' }}>
            {t.tlsSettings}
          </Link>
        }
      >
        <Transport />
      </Section>
      <LoadedSection title={t.pq} hint={t.pqHint} query={exchange} lines={5}>
        {(status) => <KeyExchange status={status} />}
      </LoadedSection>
      <LoadedSection title={t.deadman} hint={t.deadmanHint} query={deadman} lines={4}>
        {(status) => <Deadman status={status} />}
      </LoadedSection>
      {isSupported('POST /system/wipe') ? (
        <Section title={t.wipe} hint={t.wipeHint}>
          <Wipe />
        </Section>
      ) : null}
    </Page>
  )
}

/** How this very page came. */
function Transport() {
  const text = useText()
  const t = text.system.security
  if (location.protocol === 'https:') return <StateWord state="ok">{t.tlsOn}</StateWord>
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)
  return local ? (
    <StateWord state="idle">{t.tlsLocal}</StateWord>
  ) : (
    <StateWord state="degraded">{t.tlsOff}</StateWord>
  )
}

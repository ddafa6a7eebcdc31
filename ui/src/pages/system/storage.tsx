// The encrypted storage of records that name hosts.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { SLOW, useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { Facts } from '@/components/facts'
import { English } from '@/components/said'
import { LoadedSection, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { useText } from '@/text'
import { formatBytes } from '@/text/format'
import { LockedForm, OpenButtons, SetUpForm, TearDown } from './storage-forms'
import { StorageKeys } from './storage-keys'

type Status = Schemas['EncryptedStorageStatus']

/** Pause between two reads during the set-up, in milliseconds. */
const SOON = 500
const STATE: Record<Schemas['StorageState'], State> = {
  absent: 'idle',
  setting_up: 'idle',
  locked: 'degraded',
  mounted: 'ok',
  erased: 'down',
}

export default function Storage() {
  const text = useText()
  const t = text.storage
  const [every, setEvery] = useState(SLOW)
  const query = useGet('/storage/encrypted', {}, { every })
  const status = query.data?.data
  const wanted = status?.state === 'setting_up' ? SOON : SLOW
  if (status && wanted !== every) setEvery(wanted)
  const hasHeader = status?.state === 'locked' || status?.state === 'mounted'
  return (
    <Page question={t.question} answer={status ? t.states[status.state] : text.common.loading}>
      <LoadedSection title={t.title} hint={t.hint} query={query} lines={5}>
        {(status) => (
          <>
            <StorageFacts status={status} />
            <Operations status={status} />
          </>
        )}
      </LoadedSection>
      {status && hasHeader && status.supported ? (
        <Section title={t.keys} hint={t.keysHint}>
          <StorageKeys status={status} />
        </Section>
      ) : null}
    </Page>
  )
}

function StorageFacts({ status }: { status: Status }) {
  const t = useText().storage
  const { state, set_up: setUp } = status
  const contents = status.contents.map((each) => t.content[each]).join(', ')
  return (
    <Facts
      facts={[
        [t.state, <StateWord state={STATE[state]}>{t.words[state]}</StateWord>],
        setUp !== null && [t.setUp, t.progress(t.phases[setUp.phase], setUp.percent)],
        setUp?.error != null && [t.reason, <English>{setUp.error}</English>],
        status.error !== null && [t.reason, <English>{status.error}</English>],
        status.size !== null && [t.size, formatBytes(status.size)],
        status.used !== null && [t.used, formatBytes(status.used)],
        status.cipher !== null && [t.cipher, status.cipher],
        status.keyslots.length > 0 && [t.slots, status.keyslots.length],
        contents !== '' && [t.contents, contents],
        status.configured && [t.storedKey, status.has_stored_key ? '✓' : '–'],
        status.configured && [t.tpm, status.tpm2.opens_at_start ? t.pcrs(sealedPcrs(status)) : '–'],
      ]}
    />
  )
}

/** PCRs of the key that a TPM seals. */
function sealedPcrs(status: Status): string {
  return status.keyslots.flatMap((slot) => slot.tpm2_pcrs).join(', ')
}

/** What can be done in this state. */
function Operations({ status }: { status: Status }) {
  const t = useText().storage
  if (!status.supported && !status.configured) {
    return (
      <p>
        {t.unsupported} <English>{status.needs}</English>
      </p>
    )
  }
  switch (status.state) {
    case 'absent':
      return <SetUpForm />
    case 'locked':
      return <LockedForm />
    case 'mounted':
      return <OpenButtons />
    case 'erased':
      return <TearDown />
    case 'setting_up':
      return null
  }
}

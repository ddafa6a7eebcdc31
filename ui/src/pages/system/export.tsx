// Exports of the configuration as files.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { readError } from '@/api/errors'
import { useGet } from '@/api/query'
import { sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { download, fileName } from '@/components/download'
import { Section } from '@/components/section'
import { ActionForm } from '@/components/action-form'
import { NewPassphraseFields, useNewPassphrase } from '@/components/new-passphrase'
import { useText } from '@/text'

/** Fetches the encrypted export and stores it as a file. */
export async function downloadEncrypted(passphrase: string, host: string | undefined) {
  const body: Schemas['PassphraseInput'] = { passphrase }
  const { data, error, response } = await client.POST('/config/export-encrypted', { body, parseAs: 'blob' })
  if (error !== undefined || !response.ok) throw readError(response, await errorBody(error))
  download(fileName(host, '.age'), data as Blob)
}

/** The error of an answer that was read as a file. */
async function errorBody(error: unknown): Promise<unknown> {
  const text = error instanceof Blob ? await error.text() : error
  if (typeof text !== 'string') return text
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function Export() {
  const text = useText()
  const t = text.system.backups
  const host = useGet('/platform', {}, { every: 60_000 }).data?.data.hostname
  const [busy, setBusy] = useState(false)
  const plain = async () => {
    setBusy(true)
    try {
      const { data } = await call(client.GET('/config/export'))
      download(
        fileName(host, '.json'),
        new Blob([JSON.stringify(data, null, 2)], { type: 'application/json' }),
      )
    } catch (error) {
      sayError(error as Error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Section title={t.exports} hint={t.exportsHint}>
      <h3 className="sub">{t.encrypted}</h3>
      <EncryptedExport host={host} hint={t.encryptedHint} />
      <h3 className="sub">{t.plain}</h3>
      <p className="mid">{t.plainHint}</p>
      <div className="btns">
        <Button icon="download" needs="operator" busy={busy} onClick={() => void plain()}>
          {t.downloadPlain}
        </Button>
      </div>
    </Section>
  )
}

interface EncryptedProps {
  host: string | undefined
  hint?: string
  primary?: boolean
  onDone?: () => void
}

export function EncryptedExport({ host, hint, primary = false, onDone }: EncryptedProps) {
  const text = useText()
  const t = text.system.backups
  const passphrase = useNewPassphrase()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  const submit = async () => {
    setBusy(true)
    setError(null)
    try {
      await downloadEncrypted(passphrase.value, host)
      passphrase.clear()
      onDone?.()
    } catch (failure) {
      setError(failure as Error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <ActionForm
      of={{ busy, error }}
      onSubmit={() => void submit()}
      word={t.downloadEncrypted}
      kind={primary ? 'primary' : 'plain'}
      icon="download"
      needs="admin"
      disabled={!passphrase.isComplete}
    >
      {hint ? <p className="mid">{hint}</p> : null}
      <NewPassphraseFields passphrase={passphrase} label={t.exportPassphrase} texts={t} />
    </ActionForm>
  )
}

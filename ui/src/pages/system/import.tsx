// Import of an export: first what it would change, then the import itself.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Field, Select } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { Section } from '@/components/section'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { readExport, type ExportFile } from './export-file'
import { PlanResult } from './plan-result'

type Mode = Schemas['ModeInput']

export function Import() {
  const t = useText().system.backups
  const [file, setFile] = useState<ExportFile | null>(null)
  const [mode, setMode] = useState<Mode>('merge')
  const [passphrase, setPassphrase] = useState('')
  const [asking, setAsking] = useState(false)
  const request = (chosen: ExportFile, dry_run: boolean) => send(chosen, { mode, dry_run }, passphrase)
  const check = useChange((chosen: ExportFile) => request(chosen, true))
  const apply = useChange((chosen: ExportFile) => request(chosen, false))
  const found = check.data?.data
  const done = apply.data?.data
  /** What was found of another file, or by another mode, says nothing of this one. */
  const forget = () => {
    check.reset()
    apply.reset()
  }
  return (
    <Section title={t.imports} hint={t.importsHint}>
      <ActionForm
        of={{ busy: check.isPending, error: check.error }}
        onSubmit={() => {
          apply.reset()

          if (file) check.mutate(file)
        }}
        word={t.check}
        kind="plain"
        needs="admin"
        disabled={!file}
        buttons={
          found?.valid && !done ? (
            <Button kind="primary" needs="admin" onClick={() => setAsking(true)}>
              {t.import}
            </Button>
          ) : null
        }
      >
        <FileField onForget={forget} onRead={setFile} />
        <HowToRead
          encrypted={file?.kind === 'encrypted'}
          passphrase={passphrase}
          mode={mode}
          onType={(typed) => {
            forget()
            setPassphrase(typed)
          }}
          onChoose={(chosen) => {
            forget()
            setMode(chosen)
          }}
        />
      </ActionForm>
      {done ? <PlanResult result={done} title={t.imported} /> : found ? <PlanResult result={found} /> : null}
      {found && file ? (
        <ConfirmImport
          open={asking}
          onClose={() => setAsking(false)}
          counts={found.counts}
          busy={apply.isPending}
          error={apply.error}
          onConfirm={() =>
            apply.mutate(file, {
              onSuccess: ({ warnings }) => {
                setAsking(false)
                say(t.imported, warnings)
              },
            })
          }
        />
      ) : null}
    </Section>
  )
}

function send(file: ExportFile, query: { mode: Mode; dry_run: boolean }, passphrase: string) {
  return file.kind === 'plain'
    ? call(client.POST('/config/import', { params: { query }, body: file.document }))
    : call(client.POST('/backup/import', { params: { query }, body: { passphrase, content: file.content } }))
}

interface ReadProps {
  encrypted: boolean
  passphrase: string
  mode: Mode
  onType: (passphrase: string) => void
  onChoose: (mode: Mode) => void
}

/** The passphrase of an encrypted file, and what becomes of what is there. */
function HowToRead({ encrypted, passphrase, mode, onType, onChoose }: ReadProps) {
  const t = useText().system.backups
  return (
    <>
      {encrypted ? (
        <PasswordField
          label={t.filePassphrase}
          value={passphrase}
          autoComplete="off"
          onChange={onType}
          required
        />
      ) : null}
      <Select<Mode>
        label={t.mode}
        value={mode}
        options={(['merge', 'replace'] as const).map((each) => [each, t.modes[each]] as const)}
        onChange={onChoose}
      />
    </>
  )
}

interface FileProps {
  onForget: () => void
  onRead: (file: ExportFile | null) => void
}

function FileField({ onForget, onRead }: FileProps) {
  const t = useText().system.backups
  const [wrong, setWrong] = useState(false)
  const choose = async (chosen: File | undefined) => {
    onForget()
    const read = chosen ? readExport(new Uint8Array(await chosen.arrayBuffer())) : null
    onRead(read)
    setWrong(chosen !== undefined && read === null)
  }
  return (
    <Field label={t.file} hint={t.fileHint} error={wrong ? t.notRead : undefined}>
      {(id, describedBy) => (
        <input
          id={id}
          className="field"
          type="file"
          accept=".json,.age,.txt,application/json"
          aria-describedby={describedBy}
          onChange={(event) => void choose(event.target.files?.[0])}
        />
      )}
    </Field>
  )
}

interface ConfirmProps {
  open: boolean
  onClose: () => void
  counts: Schemas['PlanResult']['counts']
  busy: boolean
  error: Error | null
  onConfirm: () => void
}

function ConfirmImport({ counts, ...props }: ConfirmProps) {
  const text = useText()
  const t = text.system.backups
  const said = text.system.plan.counts(counts.create, counts.update, counts.delete, counts.unchanged)
  return (
    <Confirm
      {...props}
      title={t.import}
      consequence={t.importConsequence(said)}
      name={t.importName}
      action={t.import}
    />
  )
}

// Import of an export: first what it would change, then the import itself.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Field, Select } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { Failure, Section } from '@/components/section'
import { useText } from '@/text'
import { readExport, type ExportFile } from './export-file'
import { PlanResult } from './plan-result'

type Mode = Schemas['ModeInput']

export function Import() {
  const text = useText()
  const t = text.system.backups
  const [file, setFile] = useState<ExportFile | null>(null)
  const [wrong, setWrong] = useState(false)
  const [mode, setMode] = useState<Mode>('merge')
  const [passphrase, setPassphrase] = useState('')
  const [asking, setAsking] = useState(false)
  const request = (chosen: ExportFile, dry_run: boolean) => {
    const query = { mode, dry_run }
    return chosen.kind === 'plain'
      ? call(client.POST('/config/import', { params: { query }, body: chosen.document }))
      : call(
          client.POST('/backup/import', {
            params: { query },
            body: { passphrase, content: chosen.content },
          }),
        )
  }
  const check = useChange((chosen: ExportFile) => request(chosen, true))
  const apply = useChange((chosen: ExportFile) => request(chosen, false))
  const found = check.data?.data
  const done = apply.data?.data
  const forget = () => {
    check.reset()
    apply.reset()
  }
  const choose = async (chosen: File | undefined) => {
    forget()
    const read = chosen ? readExport(new Uint8Array(await chosen.arrayBuffer())) : null
    setFile(read)
    setWrong(chosen !== undefined && read === null)
  }
  return (
    <Section title={t.imports} hint={t.importsHint}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          apply.reset()
          if (file) check.mutate(file)
        }}
      >
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
        {file?.kind === 'encrypted' ? (
          <PasswordField
            label={t.filePassphrase}
            value={passphrase}
            autoComplete="off"
            onChange={(value) => {
              forget()
              setPassphrase(value)
            }}
            required
          />
        ) : null}
        <Select<Mode>
          label={t.mode}
          value={mode}
          options={(['merge', 'replace'] as const).map((each) => [each, t.modes[each] ?? each] as const)}
          onChange={(value) => {
            forget()
            setMode(value)
          }}
        />
        {check.error ? <Failure error={check.error} /> : null}
        <div className="btns">
          <Button submit needs="admin" busy={check.isPending} disabled={!file}>
            {t.check}
          </Button>
          {found?.valid && !done ? (
            <Button kind="primary" needs="admin" onClick={() => setAsking(true)}>
              {t.import}
            </Button>
          ) : null}
        </div>
      </form>
      {done ? <PlanResult result={done} title={t.imported} /> : found ? <PlanResult result={found} /> : null}
      {found && file ? (
        <Confirm
          open={asking}
          onClose={() => setAsking(false)}
          title={t.import}
          consequence={t.importConsequence(
            text.system.plan.counts(
              found.counts.create,
              found.counts.update,
              found.counts.delete,
              found.counts.unchanged,
            ),
          )}
          name={t.importName}
          action={t.import}
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

// The value of one setting, by its type.

import { useState } from 'react'
import { ApiError, call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { Check, TextArea, TextField } from '@/components/fields'
import { useAction, useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { controlOf, typedOf, valueOf, type Setting } from './settings-tree'

export function SettingEditor({ setting }: { setting: Setting }) {
  return setting.apply === 'file' ? <FileSetting setting={setting} /> : <Editor setting={setting} />
}

/** A setting that only the file has. */
function FileSetting({ setting }: { setting: Setting }) {
  const t = useText().system.settings
  return (
    <div className="set">
      <code className="value">{typedOf(setting.value, controlOf(setting.value)) || t.empty}</code>
      <p className="dim">{t.fileOnly}</p>
    </div>
  )
}

function Editor({ setting }: { setting: Setting }) {
  const text = useText()
  const t = text.system.settings
  const { key } = setting
  const [control] = useState(() => controlOf(setting.value))
  const [typed, setTyped] = useState(() => typedOf(setting.value, control))
  const [problem, setProblem] = useState<string>()
  const read = useGet('/settings/{key}', { path: { key } }, { every: false })
  const save = useFormAction(
    (value: unknown) =>
      call(
        client.PUT('/settings/{key}', {
          params: { path: { key }, header: read.data?.etag ? { 'If-Match': read.data.etag } : {} },
          body: { value },
        }),
      ),
    () => t.set(key),
  )
  const reset = useAction(
    () => call(client.DELETE('/settings/{key}', { params: { path: { key }, header: {} } })),
    () => t.resetDone(key),
  )
  const submit = () => {
    setProblem(undefined)
    let value: unknown
    try {
      value = valueOf(typed, control)
    } catch {
      setProblem(t.badJson)
      return
    }
    save.run(value)
  }
  const error = save.error instanceof ApiError ? save.error : undefined
  const wrong = problem ?? error?.fields[0]?.message
  return (
    <ActionForm
      of={save}
      className="form set"
      onSubmit={submit}
      word={text.common.save}
      needs="operator"
      buttons={
        setting.source === 'runtime' ? (
          <Button needs="operator" title={t.resetHint} does={reset}>
            {t.reset}
          </Button>
        ) : null
      }
    >
      <Control name={key} control={control} typed={typed} error={wrong} onType={setTyped} />
      {setting.source === 'runtime' ? <p className="dim sm">{t.resetHint}</p> : null}
    </ActionForm>
  )
}

interface ControlProps {
  /** The key of the setting. */
  name: string
  control: ReturnType<typeof controlOf>
  typed: string
  error: string | undefined
  onType: (typed: string) => void
}

function Control({ name, control, typed, error, onType }: ControlProps) {
  const t = useText().system.settings
  if (control === 'switch')
    return (
      <Check
        label={<code>{name}</code>}
        checked={typed === 'true'}
        onChange={(checked) => onType(String(checked))}
      />
    )
  const field = { value: typed, error, onChange: onType, spellCheck: false }
  if (control === 'lines' || control === 'json')
    return (
      <TextArea
        label={control === 'json' ? `${t.newValue} (${t.json})` : t.newValue}
        hint={control === 'lines' ? t.listHint : t.ownPage}
        rows={Math.min(14, Math.max(3, typed.split('\n').length))}
        {...field}
      />
    )
  return (
    <TextField
      label={t.newValue}
      type={control === 'number' ? 'number' : 'text'}
      step="any"
      autoComplete="off"
      {...field}
    />
  )
}

// The value of one setting, by its type.

import { useState } from 'react'
import { ApiError, call, client } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import { Button } from '@/components/button'
import { Check, ErrorSummary, TextArea, TextField } from '@/components/fields'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { controlOf, typedOf, valueOf, type Setting } from './settings-tree'

export function SettingEditor({ setting }: { setting: Setting }) {
  const text = useText()
  const t = text.system.settings
  const { key } = setting
  const [control] = useState(() => controlOf(setting.value))
  const [typed, setTyped] = useState(() => typedOf(setting.value, control))
  const [problem, setProblem] = useState<string>()
  const read = useGet('/settings/{key}', { path: { key } }, { every: false })
  const save = useChange((value: unknown) =>
    call(
      client.PUT('/settings/{key}', {
        params: { path: { key }, header: read.data?.etag ? { 'If-Match': read.data.etag } : {} },
        body: { value },
      }),
    ),
  )
  const reset = useChange(() =>
    call(client.DELETE('/settings/{key}', { params: { path: { key }, header: {} } })),
  )
  if (setting.apply === 'file')
    return (
      <div className="set">
        <code className="value">{typedOf(setting.value, control) || t.empty}</code>
        <p className="dim">{t.fileOnly}</p>
      </div>
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
    save.mutate(value, { onSuccess: ({ warnings }) => say(t.set(key), warnings) })
  }
  const error = save.error instanceof ApiError ? save.error : undefined
  const wrong = problem ?? error?.fields[0]?.message
  return (
    <form
      className="form set"
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {error ? <ErrorSummary error={error} /> : save.error ? <Failure error={save.error} /> : null}
      <Control name={key} control={control} typed={typed} error={wrong} onType={setTyped} />
      <div className="btns">
        <Button kind="primary" submit needs="operator" busy={save.isPending}>
          {text.common.save}
        </Button>
        {setting.source === 'runtime' ? (
          <Button
            needs="operator"
            busy={reset.isPending}
            title={t.resetHint}
            onClick={() =>
              reset.mutate(undefined, {
                onSuccess: ({ warnings }) => say(t.resetDone(key), warnings),
                onError: sayError,
              })
            }
          >
            {t.reset}
          </Button>
        ) : null}
      </div>
      {setting.source === 'runtime' ? <p className="dim sm">{t.resetHint}</p> : null}
    </form>
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

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
      {control === 'switch' ? (
        <Check
          label={<code>{key}</code>}
          checked={typed === 'true'}
          onChange={(checked) => setTyped(String(checked))}
        />
      ) : null}
      {control === 'text' || control === 'number' || control === 'unset' ? (
        <TextField
          label={t.newValue}
          type={control === 'number' ? 'number' : 'text'}
          step="any"
          value={typed}
          error={wrong}
          onChange={setTyped}
          autoComplete="off"
          spellCheck={false}
        />
      ) : null}
      {control === 'lines' || control === 'json' ? (
        <TextArea
          label={control === 'json' ? `${t.newValue} (${t.json})` : t.newValue}
          hint={control === 'lines' ? t.listHint : t.ownPage}
          rows={Math.min(14, Math.max(3, typed.split('\n').length))}
          value={typed}
          error={wrong}
          onChange={setTyped}
          spellCheck={false}
        />
      ) : null}
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

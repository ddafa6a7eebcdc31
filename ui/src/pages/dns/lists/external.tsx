// The external filter that queries can be forwarded to.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { sayError } from '@/session/toasts'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { TextField } from '@/components/fields'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { numberOf } from '../numbers'

export function ExternalFilter() {
  const text = useText()
  const { external } = text.dns.lists
  const query = useGet('/dns/extfilter/status')
  const [editing, setEditing] = useState(false)
  const use = useChange((on: boolean) =>
    on ? call(client.POST('/dns/extfilter/enable')) : call(client.POST('/dns/extfilter/disable')),
  )
  const status = query.data?.data
  return (
    <Section
      title={external.title}
      hint={external.hint}
      actions={
        <>
          <Button size="small" needs="admin" aria-expanded={editing} onClick={() => setEditing(!editing)}>
            {external.configure}
          </Button>
          {status?.configured ? (
            <Button
              size="small"
              needs="admin"
              busy={use.isPending}
              onClick={() => use.mutate(!status.enabled, { onError: sayError })}
            >
              {status.enabled ? external.disable : external.enable}
            </Button>
          ) : null}
        </>
      }
    >
      <Loaded query={query}>
        {(data) => (data.configured ? <FilterFacts status={data} /> : <p className="mid">{external.none}</p>)}
      </Loaded>
      {editing ? <ConfigForm onDone={() => setEditing(false)} /> : null}
    </Section>
  )
}

function FilterFacts({ status: data }: { status: Schemas['ExtFilterStatus'] }) {
  const text = useText()
  const { external } = text.dns.lists
  const yes = (value: boolean | null) => (value === null ? '-' : value ? text.common.yes : text.common.no)
  return (
    <>
      <Facts
        className="kv"
        facts={[
          [
            external.enabled,
            <StateWord key="state" state={!data.enabled ? 'idle' : data.reachable ? 'ok' : 'down'}>
              {!data.enabled
                ? external.states.off
                : data.reachable
                  ? external.states.on
                  : external.states.down}
            </StateWord>,
          ],
          [external.url, data.url],
          [external.version, data.version],
          [external.reachable, yes(data.reachable)],
          [external.blocking, yes(data.blocking)],
          [external.queries, numberOf(data.queries_today)],
          [external.blocked, numberOf(data.blocked_today)],
        ]}
      />
      {data.error ? <p className="mid">{data.error}</p> : null}
    </>
  )
}

function ConfigForm({ onDone }: { onDone: () => void }) {
  const query = useGet('/dns/extfilter/config', {}, { every: false })
  return (
    <Loaded query={query}>
      {(config) => (
        <ConfigFields
          url={config.url}
          resolver={config.resolver}
          hasPassword={config.has_password}
          onDone={onDone}
        />
      )}
    </Loaded>
  )
}

function ConfigFields(props: {
  url: string
  resolver: string | null
  hasPassword: boolean
  onDone: () => void
}) {
  const text = useText()
  const { external } = text.dns.lists
  const [url, setUrl] = useState(props.url)
  const [resolver, setResolver] = useState(props.resolver ?? '')
  const [password, setPassword] = useState('')
  const save = useFormAction(
    () =>
      call(
        client.PUT('/dns/extfilter/config', {
          body: {
            url,
            resolver: resolver === '' ? null : resolver,
            // What is left out keeps its value.
            ...(password === '' ? {} : { password }),
          } as never,
        }),
      ),
    () => {
      props.onDone()
      return text.common.saved
    },
  )
  return (
    <ActionForm
      className="form form--2"
      of={save}
      onSubmit={() => save.run()}
      word={text.common.save}
      kind="plain"
      needs="admin"
      onCancel={props.onDone}
    >
      <TextField label={external.url} value={url} error={save.of('url')} onChange={setUrl} />
      <TextField
        label={external.resolver}
        hint={external.resolverHint}
        value={resolver}
        error={save.of('resolver')}
        onChange={setResolver}
      />
      <TextField
        label={external.password}
        hint={props.hasPassword ? external.passwordHint : undefined}
        type="password"
        autoComplete="off"
        value={password}
        error={save.of('password')}
        onChange={setPassword}
      />
    </ActionForm>
  )
}

// Step 5: a tunnel from the file of a VPN provider.

import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { Button } from '@/components/button'
import { ErrorSummary } from '@/components/fields'
import { Failure, Loaded, Section } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { ImportFields } from '@/components/tunnel-import/fields'
import { FileDrop } from '@/components/tunnel-import/file-drop'
import { TunnelPreview } from '@/components/tunnel-import/preview'
import { useTunnelImport } from '@/components/tunnel-import/use-import'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { StepPage, type StepProps } from './step'

type Tunnel = Schemas['Tunnel']

const STATE: Record<string, State> = {
  up: 'ok',
  down: 'down',
  connecting: 'unknown',
  degraded: 'degraded',
  disconnecting: 'down',
  error: 'down',
}

export function TunnelState({ tunnel }: { tunnel: Tunnel }) {
  const text = useText()
  const status = tunnel.status ?? ''
  return (
    <StateWord state={STATE[status] ?? 'unknown'}>
      {text.wizard.path.status[status] ?? (status || '-')}
    </StateWord>
  )
}

export function PathStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.path
  const tunnels = useGet('/tunnels', {}, { every: 3000 })
  const chosen = useTunnelImport()
  const bring = useChange(async () => {
    const added = await chosen.save()
    await call(client.POST('/tunnels/{id}/up', { params: { path: { id: added.data.id } } }))
    return added
  })
  const have = tunnels.data?.data ?? []
  const taken = have.find((tunnel) => tunnel.id === props.progress.tunnel)
  const error = bring.error instanceof ApiError ? bring.error : null
  const isFile = chosen.kind !== null
  const submit = () => {
    if (isFile)
      bring.mutate(undefined, {
        onSuccess: ({ data, warnings }) => {
          chosen.clear()
          say(t.imported(data.name), warnings)
          props.finish(data.name, { tunnel: data.id })
        },
      })
    else if (taken) props.finish(taken.name)
  }
  return (
    <StepPage
      {...props}
      step="path"
      title={t.title}
      lead={t.lead}
      action={isFile ? t.import : text.wizard.next}
      onAction={submit}
      busy={bring.isPending}
      disabled={isFile ? chosen.name === '' || chosen.error !== null : taken === undefined}
    >
      {have.length > 0 ? (
        <Section title={t.have}>
          <Loaded query={tunnels}>
            {(list) => (
              <Table
                label={t.have}
                rows={list}
                id={(tunnel) => tunnel.id}
                columns={[
                  {
                    cell: (tunnel) => (
                      <span className="two">
                        <span className="med">{tunnel.name}</span>
                        <small>{tunnel.type}</small>
                      </span>
                    ),
                  },
                  { cell: (tunnel) => <TunnelState tunnel={tunnel} /> },
                  {
                    className: 'mono',
                    cell: (tunnel) =>
                      tunnel.endpoint_ip ?? tunnel.peers[0]?.endpoint ?? tunnel.remotes[0] ?? '-',
                  },
                  {
                    numeric: true,
                    cell: (tunnel) =>
                      taken === tunnel ? (
                        <Tag>{t.taken}</Tag>
                      ) : (
                        <Button size="small" onClick={() => props.finish(tunnel.name, { tunnel: tunnel.id })}>
                          {t.use}
                        </Button>
                      ),
                  },
                ]}
              />
            )}
          </Loaded>
        </Section>
      ) : null}
      {isFile ? (
        <div className="pair">
          <div className="form">
            {error && error.fields.length > 0 ? (
              <ErrorSummary error={error} />
            ) : bring.error ? (
              <Failure error={bring.error} />
            ) : null}
            <ImportFields of={chosen} error={error} />
          </div>
          <Section
            title={t.preview}
            hint={text.paths.import.previewHint}
            actions={
              <Button size="small" onClick={chosen.clear}>
                {text.paths.import.again}
              </Button>
            }
          >
            <TunnelPreview of={chosen} />
          </Section>
        </div>
      ) : (
        <FileDrop onFile={chosen.choose} />
      )}
    </StepPage>
  )
}

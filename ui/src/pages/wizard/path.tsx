// Step 5: a tunnel from the file of a VPN provider.

import { ApiError, call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import { LoadedSection, Failure, Section } from '@/components/section'
import { StateWord, Tag, type State } from '@/components/state'
import { ImportFields } from '@/components/tunnel-import/fields'
import { FileDrop } from '@/components/tunnel-import/file-drop'
import { TunnelPreview } from '@/components/tunnel-import/preview'
import { useTunnelImport } from '@/components/tunnel-import/use-import'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useFormAction } from '@/components/action'
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
  const bring = useFormAction(
    async () => {
      const added = await chosen.save()
      await call(client.POST('/tunnels/{id}/up', { params: { path: { id: added.data.id } } }))
      return added
    },
    (data) => {
      chosen.clear()
      props.finish(data.name, { tunnel: data.id })
      return t.imported(data.name)
    },
  )
  const have = tunnels.data?.data ?? []
  const taken = have.find((tunnel) => tunnel.id === props.progress.tunnel)
  const isFile = chosen.kind !== null
  const submit = () => {
    if (isFile) bring.run()
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
      busy={bring.busy}
      disabled={isFile ? chosen.name === '' || chosen.error !== null : taken === undefined}
    >
      {have.length > 0 ? (
        <LoadedSection title={t.have} query={tunnels}>
          {(list) => (
            <Tunnels
              list={list}
              taken={taken}
              onTake={(tunnel) => props.finish(tunnel.name, { tunnel: tunnel.id })}
            />
          )}
        </LoadedSection>
      ) : null}
      {isFile ? <ImportedFile chosen={chosen} error={bring.error} /> : <FileDrop onFile={chosen.choose} />}
    </StepPage>
  )
}

interface FileProps {
  chosen: ReturnType<typeof useTunnelImport>
  error: Error | null
}

/** The file that was chosen: what it lacks, and what it makes. */
function ImportedFile({ chosen, error }: FileProps) {
  const text = useText()
  const problem = error instanceof ApiError ? error : null
  return (
    <div className="pair">
      <div className="form">
        <Failure error={error} />
        <ImportFields of={chosen} error={problem} />
      </div>
      <Section
        title={text.wizard.path.preview}
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
  )
}

interface TunnelsProps {
  list: Tunnel[]
  taken: Tunnel | undefined
  onTake: (tunnel: Tunnel) => void
}

/** The tunnels that are there. */
function Tunnels({ list, taken, onTake }: TunnelsProps) {
  const t = useText().wizard.path
  return (
    <Table
      label={t.have}
      rows={list}
      id={(tunnel) => tunnel.id}
      columns={[
        {
          cell: (tunnel) => (
            <TwoLines second={tunnel.type}>
              <span className="med">{tunnel.name}</span>
            </TwoLines>
          ),
        },
        { cell: (tunnel) => <TunnelState tunnel={tunnel} /> },
        {
          className: 'mono',
          cell: (tunnel) => tunnel.endpoint_ip ?? tunnel.peers[0]?.endpoint ?? tunnel.remotes[0] ?? '-',
        },
        {
          numeric: true,
          cell: (tunnel) =>
            taken === tunnel ? (
              <Tag>{t.taken}</Tag>
            ) : (
              <Button size="small" onClick={() => onTake(tunnel)}>
                {t.use}
              </Button>
            ),
        },
      ]}
    />
  )
}

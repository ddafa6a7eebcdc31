// The form that starts a capture: where, of which packets, and until when.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useDraft, type Draft } from '@/components/draft'
import { FieldList } from '@/components/form-fields'
import { useGo } from '@/session/link'
import { useText } from '@/text'
import { formatAge, formatBytes, formatNumber } from '@/text/format'
import { blank, DURATIONS, filterOf, orderOf, SNAPLENS, type CaptureFields } from './capture-order'

interface Props {
  devices: readonly Schemas['Device'][]
  /** What the page that leads here has chosen. */
  start: Partial<CaptureFields>
}

export function CaptureForm({ devices, start }: Props) {
  const words = useText().captures
  const go = useGo()
  const interfaces = useGet('/interfaces', {}, { every: false }).data?.data ?? []
  const draft = useDraft(`capture.${Object.values(start).join(' ')}`, { ...blank, ...start })
  const { value } = draft
  const device = devices.find((each) => each.id === value.device)
  const isLan = interfaces.some((each) => each.name === value.interface && each.role === 'lan')
  const ofDevice = device ? filterOf(device, isLan || value.interface === 'lan') : null
  const send = useFormAction(
    () => call(client.POST('/diagnostics/capture', { body: orderOf(value, ofDevice) })),
    ({ id }) => {
      draft.discard()
      go(`/activity/captures/${id}`)
    },
  )
  return (
    <ActionForm
      className="form form--2"
      of={send}
      onSubmit={() => send.run()}
      word={words.start}
      icon="capture"
      needs="operator"
      disabled={device !== undefined && ofDevice === null}
    >
      <FieldList
        draft={draft}
        texts={words.fields}
        error={send.of}
        fields={[
          {
            field: 'device',
            kind: 'select',
            options: [['', words.anyDevice], ...devices.map(({ id, name }) => [id, name] as const)],
            hint: device ? ofDevice === null ? words.noAddress : <Expression of={ofDevice} /> : undefined,
          },
        ]}
      />
      <Choices draft={draft} error={send.of} interfaces={interfaces} />
      <p className="dim sm wide">{words.ends(formatNumber(64))}</p>
    </ActionForm>
  )
}

interface ChoicesProps {
  draft: Draft<CaptureFields>
  error: (path: string) => string | undefined
  interfaces: readonly Schemas['Interface'][]
}

/** Where it captures, which packets, and when it ends. */
function Choices({ draft, error, interfaces }: ChoicesProps) {
  const text = useText()
  const words = text.captures
  const tunnels = useGet('/tunnels', {}, { every: false }).data?.data ?? []
  const presets = useGet('/diagnostics/capture/presets', {}, { every: false }).data?.data ?? []
  const preset = presets.find((each) => each.name === draft.value.preset)
  return (
    <FieldList
      draft={draft}
      texts={words.fields}
      error={error}
      fields={[
        {
          field: 'interface',
          kind: 'choice',
          options: [
            ['lan', words.lan],
            ['any', words.any],
            ...namesOf(interfaces, tunnels).map((name) => [name, name] as const),
          ],
        },
        {
          field: 'preset',
          kind: 'choice',
          options: [['', words.noPreset], ...Object.entries(words.presets)],
          hint: preset ? <Expression of={preset.filter} /> : undefined,
        },
        { field: 'filter', input: { placeholder: 'port 443' } },
        {
          field: 'seconds',
          kind: 'choice',
          path: 'duration_sec',
          options: DURATIONS.map((each) => [each, formatAge(Number(each), text)] as const),
        },
        { field: 'count', kind: 'number', min: 1, max: 50_000, required: true },
        {
          field: 'snaplen',
          kind: 'choice',
          options: SNAPLENS.map((each) => [each, words.snaplens[each](formatBytes(Number(each)))] as const),
        },
        { field: 'promiscuous', kind: 'check' },
      ]}
    />
  )
}

/** A filter expression. */
function Expression({ of }: { of: string }) {
  return <code className="wrap">{of}</code>
}

/** The names of the interfaces, and of those of tunnels, each once. */
function namesOf(
  interfaces: readonly Schemas['Interface'][],
  tunnels: readonly Schemas['Tunnel'][],
): string[] {
  const names = [...interfaces.map((each) => each.name), ...tunnels.map((each) => each.interface ?? '')]
  return [...new Set(names)].filter((name) => name !== '' && name !== 'lo')
}

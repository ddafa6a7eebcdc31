// Import of a tunnel from a file: it is dropped or pasted, shown as the gateway reads it, and imported.

import { ApiError } from '@/api/client'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LinkButton } from '@/components/link-button'
import { Section } from '@/components/section'
import { ImportFields } from '@/components/tunnel-import/fields'
import { FileDrop } from '@/components/tunnel-import/file-drop'
import { TunnelPreview } from '@/components/tunnel-import/preview'
import { useTunnelImport, type TunnelImport } from '@/components/tunnel-import/use-import'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { remoteOf } from './tunnel-state'

export default function ImportTunnel() {
  const text = useText()
  const chosen = useTunnelImport()
  const words = text.paths.import
  useTitle(words.title)
  const { kind, error } = chosen
  const read = kind === null ? undefined : chosen.read?.data
  const named = kind === null ? '' : text.paths.types[kind]
  return (
    <Page
      question={words.question}
      answer={
        kind === null
          ? words.answerEmpty
          : read
            ? words.answer(named, remoteOf(read))
            : error
              ? words.answerRefused(named)
              : text.common.loading
      }
    >
      {kind === null ? (
        <Section title={words.title}>
          <FileDrop onFile={chosen.choose} />
        </Section>
      ) : (
        <div className="cols cols--2">
          <Section
            title={words.preview}
            hint={words.previewHint}
            actions={
              <Button size="small" onClick={chosen.clear}>
                {words.again}
              </Button>
            }
          >
            <TunnelPreview of={chosen} />
          </Section>
          <Submit chosen={chosen} />
        </div>
      )}
    </Page>
  )
}

function Submit({ chosen }: { chosen: TunnelImport }) {
  const text = useText()
  const go = useGo()
  const words = text.paths.import
  const change = useFormAction(chosen.save, (data) => {
    go(`/paths/tunnels/${data.id}`)
    return words.done(data.name)
  })
  const problem = change.error instanceof ApiError ? change.error : null
  return (
    <Section title={words.title}>
      <ActionForm
        of={change}
        onSubmit={() => change.run()}
        word={words.submit}
        needs="operator"
        disabled={chosen.error !== null}
        buttons={
          <LinkButton kind="ghost" to="/paths">
            {text.common.cancel}
          </LinkButton>
        }
      >
        <ImportFields of={chosen} error={problem} />
      </ActionForm>
    </Section>
  )
}

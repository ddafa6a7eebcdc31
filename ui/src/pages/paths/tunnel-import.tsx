// Import of a tunnel from a file: it is dropped or pasted, shown as the gateway reads it, and imported.

import { ApiError } from '@/api/client'
import { useChange } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { say } from '@/session/toasts'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LinkButton } from '@/components/link-button'
import { ErrorSummary } from '@/components/fields'
import { Failure, Section } from '@/components/section'
import { ImportFields } from '@/components/tunnel-import/fields'
import { FileDrop } from '@/components/tunnel-import/file-drop'
import { TunnelPreview } from '@/components/tunnel-import/preview'
import { useTunnelImport, type TunnelImport } from '@/components/tunnel-import/use-import'
import { useText } from '@/text'
import { remoteOf } from './tunnel-state'

export default function ImportTunnel() {
  const text = useText()
  const chosen = useTunnelImport()
  const words = text.paths.import
  useTitle(words.title)
  const { kind, error } = chosen
  const read = kind === null ? undefined : chosen.read?.data
  const named = kind === null ? '' : (text.paths.types[kind] ?? kind)
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
  const change = useChange(chosen.save)
  const problem = change.error instanceof ApiError ? change.error : null
  return (
    <Section title={words.title}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          change.mutate(undefined, {
            onSuccess: ({ data, warnings }) => {
              say(words.done(data.name), warnings)
              go(`/paths/tunnels/${data.id}`)
            },
          })
        }}
      >
        {problem && problem.fields.length > 0 ? (
          <ErrorSummary error={problem} />
        ) : change.error ? (
          <Failure error={change.error} />
        ) : null}
        <ImportFields of={chosen} error={problem} />
        <div className="btns">
          <Button
            kind="primary"
            submit
            needs="operator"
            busy={change.isPending}
            disabled={chosen.error !== null}
          >
            {words.submit}
          </Button>
          <LinkButton kind="ghost" to="/paths">
            {text.common.cancel}
          </LinkButton>
        </div>
      </form>
    </Section>
  )
}

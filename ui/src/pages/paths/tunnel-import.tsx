// Import of a tunnel from a file: it is dropped or pasted, shown without its keys, and sent to the daemon.

import { useState } from 'react'
import { call, client, ApiError } from '@/api/client'
import { useChange } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { say } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { ErrorSummary, TextField } from '@/components/fields'
import { Failure, Section } from '@/components/section'
import { useText } from '@/text'
import { paths } from './entry'
import { FileDrop } from './file-drop'
import { nameFromFile, parseFile, type ParsedFile } from './import-file'
import { Preview } from './import-preview'

interface Chosen {
  text: string
  file: ParsedFile | null
  name: string
}

export default function ImportTunnel() {
  const text = useText()
  const [chosen, setChosen] = useState<Chosen | null>(null)
  const words = text.paths.import
  useTitle(words.title)
  const parsed = chosen?.file ?? null
  const remote = parsed?.peers.find((peer) => peer.endpoint)?.endpoint ?? parsed?.remotes[0]
  const kind = parsed ? (text.paths.types[parsed.kind] ?? parsed.kind) : ''
  return (
    <>
      <Answer question={words.question}>
        {chosen === null
          ? words.answerEmpty
          : parsed === null
            ? words.notKnown
            : remote
              ? words.answer(kind, remote)
              : words.answerNone(kind)}
      </Answer>
      <Tabs entry={paths} />
      {chosen === null || parsed === null ? (
        <Section title={words.title}>
          <FileDrop
            onFile={(content, name) =>
              setChosen({ text: content, file: parseFile(content), name: nameFromFile(name) })
            }
          />
        </Section>
      ) : (
        <>
          <Section
            title={words.preview}
            hint={words.previewHint}
            actions={
              <Button size="small" onClick={() => setChosen(null)}>
                {words.again}
              </Button>
            }
          >
            <Preview file={parsed} />
          </Section>
          <Submit key={chosen.text} chosen={chosen} parsed={parsed} />
        </>
      )}
    </>
  )
}

function Submit({ chosen, parsed }: { chosen: Chosen; parsed: ParsedFile }) {
  const text = useText()
  const go = useGo()
  const words = text.paths.import
  const [name, setName] = useState(chosen.name)
  const [username, setUsername] = useState('')
  const [password, setPassword] = useState('')
  const [passphrase, setPassphrase] = useState('')
  const change = useChange(() =>
    parsed.kind === 'wireguard'
      ? call(client.POST('/tunnels/import-wireguard', { body: { name, config: chosen.text } }))
      : call(
          client.POST('/tunnels/upload-ovpn', {
            body: {
              name,
              config: chosen.text,
              username: username || null,
              password: password || null,
              key_passphrase: passphrase || null,
            },
          }),
        ),
  )
  const problem = change.error instanceof ApiError ? change.error : null
  const wantsPassphrase = parsed.problems.some((each) => each.code === 'needs_passphrase')
  return (
    <Section title={words.title}>
      <form
        className="form form--page"
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
        <div className="form form--2 form--fields">
          <TextField
            label={words.name}
            hint={words.nameHint}
            error={problem?.of('name')}
            value={name}
            onChange={setName}
            required
            pattern="[a-z0-9_\-]{1,32}"
            autoComplete="off"
          />
          {parsed.needsPassword ? (
            <>
              <TextField label={words.username} value={username} onChange={setUsername} autoComplete="off" />
              <TextField
                label={words.password}
                type="password"
                value={password}
                onChange={setPassword}
                autoComplete="new-password"
              />
            </>
          ) : null}
          {wantsPassphrase ? (
            <TextField
              label={words.passphrase}
              type="password"
              value={passphrase}
              onChange={setPassphrase}
              autoComplete="new-password"
            />
          ) : null}
        </div>
        <div className="btns">
          <Button kind="primary" submit needs="operator" busy={change.isPending}>
            {words.submit}
          </Button>
          <Button kind="ghost" onClick={() => go('/paths')}>
            {text.common.cancel}
          </Button>
        </div>
      </form>
    </Section>
  )
}

// Everything that the log has of one query, and what can be done about its name.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { Link } from '@/session/link'
import type { Search } from '@/session/search-params'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { TextField } from '@/components/fields'
import { useFirstField } from '@/components/first-field'
import { Actions } from '@/components/menu'
import { useFormAction } from '@/components/action'
import { ActionForm } from '@/components/action-form'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { tookOf } from './entry-words'
import type { Entry } from './filters'
import { useNameActions } from './name-actions'

interface Props {
  entry: Entry
  filterBy: (change: Search) => void
}

export function Detail({ entry, filterBy }: Props) {
  const text = useText()
  const { log } = text.dns
  const actions = useNameActions(entry)
  const [direct, setDirect] = useState(false)
  const device = entry.client?.device_id
  const first = actions[0]
  return (
    <div className="log__detail">
      <div className="btns">
        {first ? (
          <Button kind="primary" size="small" needs={first.needs} onClick={first.run}>
            {first.label}
          </Button>
        ) : null}
        {actions.slice(1, 3).map((action) => (
          <Button key={action.id} size="small" needs={action.needs} onClick={action.run}>
            {action.label}
          </Button>
        ))}
        {device ? (
          <Button size="small" needs="operator" aria-expanded={direct} onClick={() => setDirect(!direct)}>
            {log.direct.button}
          </Button>
        ) : null}
        {device ? (
          <Link
            className="btn btn--s"
            to={`/devices/${device}`}
            search={{ destination: entry.question.name }}
          >
            {log.why}
          </Link>
        ) : null}
        <Actions label={log.actionsFor(entry.question.name)} actions={actions.slice(3)} />
      </div>
      {direct && device ? <DirectForm entry={entry} device={device} onDone={() => setDirect(false)} /> : null}
      <EntryFacts entry={entry} />
      <div>
        <p className="dim sm">{log.facts.answers(entry.answers.length)}</p>
        <ul className="mono sm log__answers">
          {entry.answers.map((answer, index) => (
            <li key={index}>
              {answer.type} {answer.value}
            </li>
          ))}
        </ul>
      </div>
      <Narrow entry={entry} filterBy={filterBy} />
    </div>
  )
}

function EntryFacts({ entry }: { entry: Entry }) {
  const { log } = useText().dns
  const { facts } = log
  return (
    <Facts
      className="kv"
      facts={[
        [facts.rule, entry.rule, 'mono'],
        [facts.list, entry.list?.name ?? entry.list_id],
        entry.through !== null && [facts.through, entry.through, 'mono'],
        [facts.upstream, entry.upstream, 'mono'],
        [facts.egress, entry.egress === 'auto' ? log.defaultRoute : entry.egress],
        [facts.rcode, entry.rcode, 'mono'],
        [facts.ede, entry.ede ? edeWords(entry.ede) : null],
        entry.dnssec !== null && [facts.dnssec, entry.dnssec ? log.validated : log.notValidated],
        [facts.proto, log.protocols[entry.proto]],
        [facts.took, tookOf(entry.elapsed_ms)],
        [facts.time, formatTime(entry.time, 'long')],
        [facts.id, String(entry.id), 'mono'],
      ]}
    />
  )
}

/** Narrows the log to what the query has in common with others. */
function Narrow({ entry, filterBy }: Props) {
  const { log } = useText().dns
  const { client, egress, list_id, question } = entry
  const links: [word: string, change: Search][] = [[log.sameName, { domain: `=${question.name}` }]]
  if (client) links.push([log.sameClient, { client: client.device_id ?? client.ip }])
  if (egress) links.push([log.sameEgress(egress), { egress }])
  if (list_id) links.push([log.sameList, { list: list_id }])
  return (
    <div className="btns">
      {links.map(([word, change]) => (
        <button
          key={word}
          type="button"
          className="link"
          onClick={() => filterBy({ ...change, open: undefined })}
        >
          {word}
        </button>
      ))}
    </div>
  )
}

/** Minutes of the exception. */
const MINUTES = 10

function edeWords({ code, text, detail }: NonNullable<Entry['ede']>) {
  return `${code} ${text}${detail ? `: ${detail}` : ''}`
}

/** An exception that lets the device reach the name past its policy. It lifts no filter. */
function DirectForm({ entry, device, onDone }: { entry: Entry; device: string; onDone: () => void }) {
  const text = useText()
  const { direct } = text.dns.log
  const form = useFirstField()
  const [reason, setReason] = useState('')
  const change = useFormAction(
    () =>
      call(
        client.POST('/exceptions', {
          body: {
            type: 'service-allowlist',
            device_id: device,
            allow_direct: true,
            duration_min: MINUTES,
            reason,
            targets: [`=${entry.question.name}`],
            profile: null,
            starts_at: null,
            expires_at: null,
            created_by: '',
            revoked_at: null,
            ended_at: null,
          },
        }),
      ),
    () => {
      onDone()
      return direct.done(entry.question.name)
    },
  )
  return (
    <ActionForm
      formRef={form}
      of={change}
      onSubmit={() => change.run()}
      word={direct.button}
      size="small"
      needs="operator"
      disabled={reason.trim() === ''}
      onCancel={onDone}
    >
      <p className="mid">
        {direct.sentence(entry.client?.name ?? entry.client?.ip ?? '', entry.question.name, MINUTES)}
        {entry.status === 'blocked' ? ` ${direct.stillFiltered}` : ''}
      </p>
      <TextField label={direct.reason} value={reason} onChange={setReason} required />
    </ActionForm>
  )
}

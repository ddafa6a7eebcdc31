// The page of a device: why it leaves the way it does, its DNS activity, exceptions, reservation, and its form.

import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { Link, useGo } from '@/session/link'
import { NotFound } from '@/components/not-found'
import { useSearchParams } from '@/session/search-params'
import { say } from '@/session/toasts'
import { Answer } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { copyText } from '@/components/copy'
import { Pieces } from '@/components/said'
import { Loaded } from '@/components/section'
import { answerPieces } from '@/components/why/evaluation-text'
import { useEvaluation } from '@/components/why/evaluate'
import { packetOf } from '@/components/why/query'
import { WhyPanel } from '@/components/why/why-panel'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { plain } from '@/text/phrase'
import { DeviceDns } from './device-dns'
import { DeviceExceptions } from './device-exceptions'
import { DeviceFacts } from './device-facts'
import { DeviceHosts } from './device-hosts'
import { DeviceForm } from './device-form'
import { DeviceReservation } from './device-reservation'
import { DeviceRules } from './device-rules'

type Device = Schemas['Device']

export default function DevicePage() {
  const { id } = useParams({ strict: false }) as { id: string }
  return id === 'new' ? <NewDevice /> : <KnownDevice key={id} id={id} />
}

function NewDevice() {
  const text = useText()
  useTitle(text.devices.add)
  return (
    <>
      <Answer question={text.devices.label}>{text.devices.addSentence}</Answer>
      <DeviceForm />
    </>
  )
}

function KnownDevice({ id }: { id: string }) {
  const query = useGet('/devices/{id}', { path: { id } })
  useTitle(query.data?.data.name)
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFound />
  return (
    <Loaded query={query} lines={8}>
      {(device) => <Page device={device} etag={query.data?.etag ?? null} />}
    </Loaded>
  )
}

const WORDS = /(BLOCKED|TUNNEL|DIRECT|LOCAL|PROXY|BLOCKIERT|DIREKT|LOKAL)/

/** The first word of a decision stands out. */
function strong(said: string) {
  return said.split(WORDS).map((part, index) => (index === 1 ? <b key={index}>{part}</b> : part))
}

function Page({ device, etag }: { device: Device; etag: string | null }) {
  const text = useText()
  const [search] = useSearchParams()
  const [removing, setRemoving] = useState(false)
  const packet = packetOf(device.id, search)
  const evaluation = useEvaluation(packet).data?.data
  const exceptions = useGet('/exceptions/active').data?.data
  const tab = search.tab ?? 'why'
  const active = exceptions?.filter((each) => each.device_id === device.id).length
  const tabs: [string, string, number | undefined][] = [
    ['why', text.devices.tabs.why, undefined],
    ['dns', text.devices.tabs.dns, undefined],
    ['exceptions', text.devices.tabs.exceptions, active],
    ['reservation', text.devices.tabs.reservation, undefined],
    ['edit', text.common.edit, undefined],
  ]
  const sentence = evaluation
    ? `${evaluation.device.name ?? device.name} → ${plain(answerPieces(evaluation, text))}`
    : undefined
  return (
    <>
      <div className="answer answer--row">
        <div>
          <span className="answer__q">{text.why.question(device.name)}</span>
          <h1 className={`sentence sentence--${evaluation?.decision ?? 'none'}`}>
            {evaluation ? (
              <>
                {evaluation.device.name ?? device.name} →{' '}
                <Pieces pieces={answerPieces(evaluation, text)} show={strong} />
              </>
            ) : (
              text.devices.noAnswer(device.name)
            )}
          </h1>
        </div>
        <div className="btns">
          {sentence ? (
            <Button
              icon="copy"
              onClick={() =>
                void copyText(sentence).then((copied) => (copied ? say(text.common.copied) : undefined))
              }
            >
              {text.why.copyAnswer}
            </Button>
          ) : null}
        </div>
      </div>
      <nav className="tabs" aria-label={device.name}>
        {tabs.map(([name, label, count]) => (
          <Link
            key={name}
            to={`/devices/${device.id}`}
            search={name === 'why' ? {} : { tab: name }}
            aria-current={tab === name ? 'page' : undefined}
          >
            {label}
            {count === undefined ? null : <span className="n">{formatNumber(count)}</span>}
          </Link>
        ))}
      </nav>
      {tab === 'why' ? (
        <>
          <WhyPanel device={device}>
            <DeviceFacts device={device} />
          </WhyPanel>
          <DeviceHosts device={device} />
        </>
      ) : tab === 'dns' ? (
        <>
          <DeviceRules device={device} />
          <DeviceDns device={device} />
        </>
      ) : tab === 'exceptions' ? (
        <DeviceExceptions device={device} />
      ) : tab === 'reservation' ? (
        <DeviceReservation device={device} />
      ) : (
        <>
          <DeviceForm device={device} etag={etag} />
          <hr className="rule" />
          <div className="btns">
            <Button needs="operator" onClick={() => setRemoving(true)}>
              {text.devices.remove}
            </Button>
          </div>
          <Remove device={device} open={removing} onClose={() => setRemoving(false)} />
        </>
      )}
    </>
  )
}

function Remove({ device, open, onClose }: { device: Device; open: boolean; onClose: () => void }) {
  const text = useText()
  const go = useGo()
  const remove = useChange(async (force: boolean) => {
    const answer = await call(
      client.DELETE('/devices/{id}', {
        params: { path: { id: device.id }, query: force ? { force: true } : {} },
      }),
    )
    // The page of what is gone is left before anything is read again.
    say(text.common.deleted(device.name), answer.warnings)
    go('/devices')
    return answer
  })
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={text.devices.removeTitle(device.name)}
      consequence={text.devices.removeConsequence}
      name={device.name}
      subject={{ type: 'device', id: device.id }}
      mayForce
      action={text.common.delete}
      busy={remove.isPending}
      error={remove.error}
      onConfirm={(force) => remove.mutate(force)}
    />
  )
}

// The page of a device: why it leaves the way it does, its DNS activity, exceptions, reservation, and its form.

import { useState } from 'react'
import type { Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { Link, useGo } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { say } from '@/session/toasts'
import { Answer } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { copyText } from '@/components/copy'
import { Pieces } from '@/components/said'
import { ObjectRoute } from '@/components/object-form'
import type { Stored } from '@/components/resource'
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
import { allDevices, DeviceForm } from './device-form'
import { DeviceReservation } from './device-reservation'
import { DeviceRules } from './device-rules'
import { DeviceServices } from './device-services'
import { DeviceTraffic } from './device-traffic'

type Device = Schemas['Device']

export default function DevicePage() {
  const text = useText()
  return (
    <ObjectRoute resource={allDevices} newTitle={text.devices.add}>
      {(stored) => (stored ? <Page stored={stored} /> : <NewDevice />)}
    </ObjectRoute>
  )
}

function NewDevice() {
  const text = useText()
  return (
    <>
      <Answer question={text.devices.label}>{text.devices.addSentence}</Answer>
      <DeviceForm stored={null} />
    </>
  )
}

const WORDS = /(BLOCKED|TUNNEL|DIRECT|LOCAL|PROXY|BLOCKIERT|DIREKT|LOKAL)/

/** The first word of a decision stands out. */
function strong(said: string) {
  return said.split(WORDS).map((part, index) => (index === 1 ? <b key={index}>{part}</b> : part))
}

function Page({ stored }: { stored: Stored<Device> }) {
  const device = stored.data
  const [search] = useSearchParams()
  const tab = search.tab ?? 'why'
  return (
    <>
      <Decision device={device} />
      <DeviceTabs device={device} tab={tab} />
      {tab === 'why' ? (
        <>
          <WhyPanel device={device}>
            <DeviceFacts device={device} />
          </WhyPanel>
          <DeviceHosts device={device} />
        </>
      ) : tab === 'dns' ? (
        <>
          <DeviceServices device={device} />
          <DeviceRules device={device} />
          <DeviceDns device={device} />
        </>
      ) : tab === 'traffic' ? (
        <DeviceTraffic device={device} />
      ) : tab === 'exceptions' ? (
        <DeviceExceptions device={device} />
      ) : tab === 'reservation' ? (
        <DeviceReservation device={device} />
      ) : (
        <>
          <DeviceForm stored={stored} />
          <hr className="rule" />
          <Remove device={device} />
        </>
      )}
    </>
  )
}

/** How the traffic of the device leaves, in a sentence. */
function Decision({ device }: { device: Device }) {
  const text = useText()
  const [search] = useSearchParams()
  const evaluation = useEvaluation(packetOf(device.id, search)).data?.data
  const name = evaluation?.device.name ?? device.name
  const copy = (sentence: string) =>
    void copyText(sentence).then((copied) => (copied ? say(text.common.copied) : undefined))
  return (
    <div className="answer answer--row">
      <div>
        <span className="answer__q">{text.why.question(device.name)}</span>
        <h1 className={`sentence sentence--${evaluation?.decision ?? 'none'}`}>
          {evaluation ? (
            <>
              {name} → <Pieces pieces={answerPieces(evaluation, text)} show={strong} />
            </>
          ) : (
            text.devices.noAnswer(device.name)
          )}
        </h1>
      </div>
      <div className="btns">
        {evaluation ? (
          <Button icon="copy" onClick={() => copy(`${name} → ${plain(answerPieces(evaluation, text))}`)}>
            {text.why.copyAnswer}
          </Button>
        ) : null}
      </div>
    </div>
  )
}

function DeviceTabs({ device, tab }: { device: Device; tab: string }) {
  const text = useText()
  const exceptions = useGet('/exceptions/active').data?.data
  const active = exceptions?.filter((each) => each.device_id === device.id).length
  const tabs: [name: string, label: string, count?: number][] = [
    ['why', text.devices.tabs.why],
    ['traffic', text.flows.traffic.tab],
    ['dns', text.devices.tabs.dns],
    ['exceptions', text.devices.tabs.exceptions, active],
    ['reservation', text.devices.tabs.reservation],
    ['edit', text.common.edit],
  ]
  return (
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
  )
}

function Remove({ device }: { device: Device }) {
  const text = useText()
  const [asking, setAsking] = useState(false)
  const go = useGo()
  const remove = useChange(async (force: boolean) => {
    const answer = await allDevices.remove(device.id, force)
    // The page of what is gone is left before anything is read again.
    say(text.common.deleted(device.name), answer.warnings)
    go('/devices')
    return answer
  })
  return (
    <>
      <div className="btns">
        <Button needs="operator" onClick={() => setAsking(true)}>
          {text.devices.remove}
        </Button>
      </div>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
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
    </>
  )
}

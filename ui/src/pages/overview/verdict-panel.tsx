// The verdict in a sentence, with the ways out of a blocked state.

import { useMemo, useState } from 'react'
import { call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useVerdict } from '@/components/verdict'
import { verdictPieces } from '@/components/verdict-text'
import { Button } from '@/components/button'
import { ExceptionDialog } from '@/components/exceptions/exception-dialog'
import { Pieces } from '@/components/said'
import { Glyph } from '@/components/state'
import { Coverage } from '@/components/hosts/coverage'
import { useAge } from '@/components/time'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { useGraph } from './flow-section'
import { partsOf } from './sentence'

export function VerdictPanel() {
  const text = useText()
  const verdict = useVerdict()
  const [allowing, setAllowing] = useState(false)
  const hops = useGraph().data?.data.hops
  const { last } = verdict
  const blocked = (last?.counts.blocked ?? 0) > 0
  // The tunnel to reconnect is one that a policy needs.
  const down = hops?.filter((hop) => hop.type === 'vpn' && !hop.usable && hop.status !== 'disabled')
  const first = down?.find((hop) => last?.sentence.includes(hop.target)) ?? down?.[0]
  return (
    <section className={`verdict v-${verdict.state}`}>
      <Glyph state={verdict.state} className="verdict__glyph" />
      <Sentence />
      {verdict.share ? <Coverage share={verdict.share} /> : null}
      <div className="verdict__meta">
        <div className="btns">
          {first?.id ? <Reconnect id={first.id} name={first.target} /> : null}
          <Button size="small" icon="clock" needs="operator" onClick={() => setAllowing(true)}>
            {text.overview.allow}
          </Button>
          {blocked ? (
            <Link className="btn btn--s btn--ghost" to="/devices" search={{ decision: 'block' }}>
              {text.overview.why}
            </Link>
          ) : null}
        </div>
        {last?.since && verdict.word === last.word ? (
          <span>{text.overview.since(formatTime(last.since, 'seconds'))}</span>
        ) : null}
      </div>
      <ExceptionDialog open={allowing} onClose={() => setAllowing(false)} />
    </section>
  )
}

function Sentence() {
  const text = useText()
  const { word, last, checkedAt } = useVerdict()
  const age = useAge(checkedAt)
  const tunnels = useGet('/tunnels').data?.data
  const policies = useGet('/routing/policies', {}, { every: 60_000 }).data?.data
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  const fresh = last !== undefined && word === last.word
  const names = useMemo(
    () => ({ tunnels: tunnels ?? [], policies: policies ?? [], devices: devices ?? [] }),
    [tunnels, policies, devices],
  )
  const linked = (said: string) =>
    partsOf(said, names).map((part, index) =>
      part.to ? (
        <Link key={index} to={part.to} search={part.search}>
          {part.text}
        </Link>
      ) : (
        <span key={index}>{part.text}</span>
      ),
    )
  return (
    <h1>
      <span className="verdict__word">{word}</span>
      {fresh ? (
        <Pieces pieces={verdictPieces(last, text)} show={linked} />
      ) : last ? (
        text.overview.staleSentence(age)
      ) : (
        text.overview.neverChecked
      )}{' '}
      {fresh && checkedAt ? <span className="dim nowrap">{text.overview.checked(age)}</span> : null}
    </h1>
  )
}

function Reconnect({ id, name }: { id: string; name: string }) {
  const text = useText()
  const up = useAction(
    () => call(client.POST('/tunnels/{id}/up', { params: { path: { id } } })),
    () => text.overview.reconnecting(name),
  )
  return (
    <Button kind="primary" size="small" icon="refresh" needs="operator" does={up}>
      {text.overview.reconnect(name)}
    </Button>
  )
}

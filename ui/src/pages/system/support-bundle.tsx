// Support bundle: an archive about this gateway for readers who should not know its network.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { SLOW, useGet } from '@/api/query'
import { useAction } from '@/components/action'
import { Button, classOf } from '@/components/button'
import { Facts } from '@/components/facts'
import { Icon } from '@/components/icons'
import { English } from '@/components/said'
import { Loaded, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { useText } from '@/text'
import { formatBytes } from '@/text/format'

const STATE: Record<Schemas['BundleState'], State> = { running: 'idle', done: 'ok', error: 'down' }
/** Pause between two reads while the archive is being built, in milliseconds. */
const SOON = 500

export function SupportBundle() {
  const t = useText().system.bundle
  const [id, setId] = useState<string>()
  const build = useAction(
    () => call(client.POST('/diagnostics/bundle')),
    (bundle) => setId(bundle.id),
  )
  return (
    <Section title={t.title} hint={t.hint}>
      <p className="mid">{t.contents}</p>
      {id === undefined ? null : <Bundle key={id} id={id} />}
      <div className="btns">
        <Button needs="admin" does={build}>
          {id === undefined ? t.build : t.buildAgain}
        </Button>
      </div>
    </Section>
  )
}

/** A bundle while it is built and kept. */
function Bundle({ id }: { id: string }) {
  const t = useText().system.bundle
  const [ended, setEnded] = useState(false)
  const query = useGet('/diagnostics/bundle/{id}', { path: { id } }, { every: ended ? SLOW : SOON })
  const state = query.data?.data.state
  if (state !== undefined && state !== 'running' && !ended) setEnded(true)
  if (query.error instanceof ApiError && query.error.status === 404) return <p role="status">{t.gone}</p>
  return (
    <Loaded query={query} lines={4}>
      {(bundle) => (
        <>
          <Summary bundle={bundle} />
          {bundle.state === 'done' ? <Download id={id} /> : null}
          <Parts parts={bundle.parts} />
        </>
      )}
    </Loaded>
  )
}

function Summary({ bundle }: { bundle: Schemas['SupportBundle'] }) {
  const text = useText()
  const t = text.system.bundle
  return (
    <Facts
      facts={[
        [t.state, <StateWord state={STATE[bundle.state]}>{t.states[bundle.state]}</StateWord>],
        [t.size, bundle.size === null ? text.common.noData : formatBytes(bundle.size)],
        bundle.error !== null && [t.reason, <English>{bundle.error}</English>],
      ]}
    />
  )
}

function Parts({ parts }: { parts: Schemas['BundlePart'][] }) {
  const t = useText().system.bundle
  return (
    <Table
      label={t.parts}
      rows={parts}
      id={(part) => part.file}
      dense
      columns={[
        { head: t.file, bare: true, className: 'mono', cell: (part) => part.file },
        {
          head: t.size,
          numeric: true,
          cell: (part) =>
            part.size === null ? <English>{part.error ?? '-'}</English> : formatBytes(part.size),
        },
      ]}
    />
  )
}

function Download({ id }: { id: string }) {
  const t = useText().system.bundle
  return (
    <p className="btns">
      <a
        className={classOf('primary', undefined)}
        href={'/api/v1/diagnostics/bundle/{id}/archive'.replace('{id}', id)}
        download={`gateway-bundle-${id}.tar.gz`}
      >
        <Icon name="download" />
        {t.download}
      </a>
    </p>
  )
}

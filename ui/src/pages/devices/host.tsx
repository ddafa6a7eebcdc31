// A host: what was observed of it, and what one can do with it.

import { useParams } from '@tanstack/react-router'
import { ApiError } from '@/api/client'
import { useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { Link, useGo } from '@/session/link'
import { Page } from '@/components/answer'
import { HostActions } from '@/components/hosts/host-actions'
import { HostFacts } from '@/components/hosts/host-facts'
import { nameOf, type Host } from '@/components/hosts/hosts'
import { LoadedSection, Empty } from '@/components/section'
import { useText } from '@/text'

export default function HostPage() {
  const text = useText()
  const words = text.hosts
  const go = useGo()
  const { id } = useParams({ strict: false }) as { id: string }
  const query = useGet('/hosts/{id}', { path: { id } }, { every: 5000 })
  const host = query.data?.data
  const gone = query.error instanceof ApiError && query.error.status === 404
  useTitle(host ? nameOf(host) : words.tab)
  return (
    <Page
      question={words.hostQuestion(host ? nameOf(host) : id)}
      actions={
        host && !gone ? <HostActions host={host} onForgotten={() => go('/devices/hosts')} /> : undefined
      }
      answer={gone ? words.gone : host ? <Standing host={host} /> : text.common.loading}
    >
      {gone ? (
        <Empty
          action={
            <Link className="btn" to="/devices/hosts">
              {words.toList}
            </Link>
          }
        >
          {words.gone}
        </Empty>
      ) : (
        <LoadedSection title={words.ofDevice} query={query}>
          {(known) => <HostFacts host={known} />}
        </LoadedSection>
      )}
    </Page>
  )
}

/** Whether it is a device, and how its traffic leaves. */
function Standing({ host }: { host: Host }) {
  const text = useText()
  const words = text.hosts
  const devices = useGet('/devices', {}, { every: 60_000 }).data?.data
  if (host.device_id === null) return <>{words.hostIsNone}</>
  return (
    <>
      {words.hostIsDevice}
      <Link to={`/devices/${host.device_id}`}>
        {devices?.find((each) => each.id === host.device_id)?.name ?? host.device_id}
      </Link>
    </>
  )
}

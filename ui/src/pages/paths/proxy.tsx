// One proxy: whether it answers, and its settings.

import type { Schemas } from '@/api/client'
import { answerOf } from '@/components/answer'
import { useTitle } from '@/session/crumb'
import { Facts } from '@/components/facts'
import { ObjectForm } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { deletionOf, useObject } from '@/components/resource'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { proxyState, Udp } from './proxies'
import { allProxies, ProxyFields } from './proxy-form'

export default function ProxyPage() {
  const text = useText()
  const id = usePageId()
  const words = text.paths.proxies
  const proxy = useObject(allProxies, id, { every: 5000 })
  const shown = proxy.data?.data
  useTitle(shown?.name)
  const named = (status: string | undefined) => words.states[status ?? 'unknown'] ?? status ?? ''
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={answerOf(proxy, text, (read) => words.is(named(read.status)))}
      deletion={deletionOf(allProxies, shown, {
        title: words.deleteTitle,
        consequence: words.deleteConsequence,
        mayForce: true,
        back: '/paths/proxies',
      })}
    >
      <Loaded query={proxy} lines={6}>
        {(read) => (
          <>
            <Section title={text.paths.detail.facts}>
              <ProxyFacts proxy={read} state={named(read.status)} />
            </Section>
            <Section title={words.settings}>
              <ObjectForm
                key={read.id}
                resource={allProxies}
                stored={{ data: read, etag: proxy.data?.etag ?? null }}
              >
                {(edit) => <ProxyFields edit={edit} />}
              </ObjectForm>
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

function ProxyFacts({ proxy: read, state }: { proxy: Schemas['Proxy']; state: string }) {
  const text = useText()
  const words = text.paths.proxies
  return (
    <Facts
      facts={[
        [
          words.columns.state,
          <StateWord key="state" state={proxyState(read.status)}>
            {state}
          </StateWord>,
        ],
        [words.columns.address, `${read.address}:${read.port}`],
        [
          text.paths.detail.latency,
          typeof read.latency_ms === 'number' ? `${formatNumber(read.latency_ms, 1)} ms` : null,
        ],
        [words.columns.udp, <Udp key="udp" proxy={read} />],
        [text.paths.detail.lastError, read.last_error],
      ]}
    />
  )
}

// One proxy: whether it answers, and its settings.

import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { Facts } from '@/components/facts'
import { useEdit } from '@/components/edit'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'
import { paths } from './entry'
import { proxyState, Udp } from './proxies'
import { ProxyFields, proxyForm, proxyInput, type ProxyForm } from './proxy-form'

type Proxy = Schemas['Proxy']

export default function ProxyPage() {
  const text = useText()
  const id = usePageId()
  const words = text.paths.proxies
  const proxy = useGet('/proxies/{id}', { path: { id } }, { every: 5000 })
  const shown = proxy.data?.data
  useTitle(shown?.name)
  const named = (status: string | undefined) => words.states[status ?? 'unknown'] ?? status ?? ''
  return (
    <ObjectPage
      question={shown ? words.detailQuestion(shown.name) : words.question}
      answer={
        proxy.error ? text.paths.unknownAnswer : shown ? words.is(named(shown.status)) : text.common.loading
      }
      entry={paths}
      deletion={
        shown
          ? {
              name: shown.name,
              title: words.deleteTitle(shown.name),
              consequence: words.deleteConsequence,
              subject: { type: 'proxy', id },
              mayForce: true,
              remove: (force) =>
                call(
                  client.DELETE('/proxies/{id}', {
                    params: { path: { id }, query: force ? { force: true } : {} },
                  }),
                ),
              back: '/paths/proxies',
              draft: `proxy.${id}`,
            }
          : null
      }
    >
      <Loaded query={proxy} lines={6}>
        {(read) => (
          <>
            <Section title={text.paths.detail.facts}>
              <Facts
                facts={[
                  [
                    words.columns.state,
                    <StateWord key="state" state={proxyState(read.status)}>
                      {named(read.status)}
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
            </Section>
            <Section title={words.settings}>
              <Edit key={read.id} proxy={read} etag={proxy.data?.etag ?? null} />
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

function Edit({ proxy, etag }: { proxy: Proxy; etag: string | null }) {
  const id = proxy.id
  const edit = useEdit<ProxyForm>({
    key: `proxy.${id}`,
    version: { value: proxyForm(proxy), etag },
    secrets: ['password'],
    save: (value, tag) =>
      call(
        client.PUT('/proxies/{id}', {
          params: { path: { id }, header: tag ? { 'If-Match': tag } : {} },
          body: proxyInput(value),
        }),
      ),
    read: async () => {
      const now = await get('/proxies/{id}', { path: { id } })
      return { value: proxyForm(now.data), etag: now.etag }
    },
  })
  return (
    <EditForm edit={edit}>
      <ProxyFields edit={edit} />
    </EditForm>
  )
}

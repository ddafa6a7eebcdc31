// One proxy: whether it answers, and its settings.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { get, useChange, useGet } from '@/api/query'
import { useTitle } from '@/app/crumb'
import { useGo } from '@/app/link'
import { say } from '@/app/toasts'
import { Answer, Tabs } from '@/components/answer'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Facts } from '@/components/facts'
import { EditForm, useEdit } from '@/components/form'
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
  const [deleting, setDeleting] = useState(false)
  const shown = proxy.data?.data
  useTitle(shown?.name)
  const named = (status: string | undefined) => words.states[status ?? 'unknown'] ?? status ?? ''
  return (
    <>
      <Answer
        question={shown ? words.detailQuestion(shown.name) : words.question}
        actions={
          shown ? (
            <Button needs="operator" onClick={() => setDeleting(true)}>
              {text.common.delete}
            </Button>
          ) : null
        }
      >
        {proxy.error ? text.paths.unknownAnswer : shown ? words.is(named(shown.status)) : text.common.loading}
      </Answer>
      <Tabs entry={paths} />
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
      {shown ? <Deletion proxy={shown} open={deleting} onClose={() => setDeleting(false)} /> : null}
    </>
  )
}

function Edit({ proxy, etag }: { proxy: Proxy; etag: string | null }) {
  const id = proxy.id
  const [initial] = useState(() => ({ value: proxyForm(proxy), etag }))
  const edit = useEdit<ProxyForm>({
    key: `proxy.${id}`,
    initial,
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
    onSaved: () => undefined,
  })
  return (
    <EditForm edit={edit}>
      <ProxyFields edit={edit} />
    </EditForm>
  )
}

function Deletion({ proxy, open, onClose }: { proxy: Proxy; open: boolean; onClose: () => void }) {
  const text = useText()
  const go = useGo()
  const words = text.paths.proxies
  const change = useChange(() =>
    call(client.DELETE('/proxies/{id}', { params: { path: { id: proxy.id }, query: { force: true } } })),
  )
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={words.deleteTitle(proxy.name)}
      consequence={words.deleteConsequence}
      name={proxy.name}
      subject={{ type: 'proxy', id: proxy.id }}
      action={text.common.delete}
      busy={change.isPending}
      error={change.error}
      onConfirm={() =>
        change.mutate(undefined, {
          onSuccess: () => {
            say(text.common.deleted(proxy.name))
            go('/paths/proxies')
          },
        })
      }
    />
  )
}

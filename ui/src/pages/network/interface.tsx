// One interface: its addresses, its configuration, and its DHCP client.

import { ApiError, call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { isSupported } from '@/api/operations'
import { useTitle } from '@/session/crumb'
import { answerOf, Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Facts } from '@/components/facts'
import { EditForm, numberOf, textOf, wordsOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { usePageId } from '@/components/page-id'
import { resource, useObjectEdit } from '@/components/resource'
import { Loaded, Section } from '@/components/section'
import { StateWord, Tag } from '@/components/state'
import { Clock } from '@/components/time'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { Addresses } from './interfaces'

type View = Schemas['InterfaceConfigView']

export default function InterfacePage() {
  const text = useText()
  const name = usePageId()
  const words = text.network.interfaces
  const config = useGet('/interfaces/{name}/config', { path: { name } }, { every: 5000 })
  useTitle(name)
  return (
    <Page
      question={words.detailQuestion(name)}
      answer={answerOf(config, text, (read) => (
        <Sentence view={read} />
      ))}
    >
      <Loaded query={config} lines={6}>
        {(view) => (
          <>
            <div className="cols cols--2">
              <Section title={words.facts}>
                <State view={view} />
              </Section>
              <Client view={view} />
            </div>
            <Section title={words.settings}>
              {view.pending_restart ? (
                <div className="banner banner--plain">
                  <Tag kind="pending">{words.pendingRestart}</Tag>
                  <code>{words.restart}</code>
                </div>
              ) : null}
              <Form key={name} view={view} etag={config.data?.etag ?? null} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Sentence({ view }: { view: View }) {
  const words = useText().network.interfaces
  const { state } = view
  if (!state.exists) return <>{words.missing}</>
  return (
    <>
      {state.up ? null : `${words.linkDown} `}
      {state.addresses.length > 0 ? words.has(state.addresses.join(', ')) : words.hasNone}
    </>
  )
}

function State({ view }: { view: View }) {
  const words = useText().network.interfaces
  const { state } = view
  return (
    <Facts
      facts={[
        [words.columns.role, words.roles[state.role]],
        [
          words.columns.state,
          <StateWord key="state" state={state.up ? 'ok' : 'down'}>
            {state.up ? words.up : words.down}
          </StateWord>,
        ],
        [words.columns.addresses, <Addresses key="addresses" addresses={state.addresses} />],
        [words.gateway, state.gateway],
        [words.dns, state.dns.join(', ') || null],
        [words.columns.mtu, state.mtu],
        [words.columns.method, words.methods[view.method] ?? view.method],
      ]}
    />
  )
}

function Client({ view }: { view: View }) {
  const text = useText()
  const words = text.network.interfaces
  const { dhcp, role } = view.state
  const path = { path: { name: view.name } }
  const change = useAction(
    (what: 'start' | 'stop' | 'renew') =>
      what === 'start'
        ? call(client.POST('/interfaces/{name}/dhcp/start', { params: path }))
        : what === 'stop'
          ? call(client.POST('/interfaces/{name}/dhcp/stop', { params: path }))
          : call(client.POST('/interfaces/{name}/dhcp/renew', { params: path })),
    (_, what) => words.done[what],
  )
  if (!isSupported('POST /interfaces/{name}/dhcp/start')) return null
  const refused = !dhcp && (role === 'lan' || role === 'uplink')
  return (
    <Section
      title={words.client}
      hint={words.clientHint}
      actions={
        refused ? null : dhcp ? (
          <>
            <Button size="small" needs="operator" busy={change.busy} onClick={() => change.run('renew')}>
              {words.renew}
            </Button>
            <Button size="small" needs="operator" busy={change.busy} onClick={() => change.run('stop')}>
              {words.stop}
            </Button>
          </>
        ) : (
          <Button size="small" needs="operator" busy={change.busy} onClick={() => change.run('start')}>
            {words.start}
          </Button>
        )
      }
    >
      {dhcp ? (
        <Facts
          facts={[
            [
              words.stage,
              <StateWord key="stage" state={dhcp.stage === 'bound' ? 'ok' : 'down'}>
                {words.stages[dhcp.stage]}
              </StateWord>,
            ],
            [words.columns.addresses, dhcp.address],
            [words.gateway, dhcp.gateway],
            [words.server, dhcp.server],
            [words.expires, dhcp.expires_at ? <Clock key="expires" time={dhcp.expires_at} /> : null],
            [words.used, dhcp.used ? text.common.yes : text.common.no],
            dhcp.error !== null && [words.error, dhcp.error],
          ]}
        />
      ) : (
        <p className="quiet">{refused ? words.notHere : words.noClient}</p>
      )}
    </Section>
  )
}

const interfaceConfigs = resource('/interfaces/{name}/config', {
  key: 'interface',
  fields: (view: View | null) => ({
    method: (view?.method ?? 'none') as string,
    address: view?.address ?? '',
    prefix: String(view?.prefix ?? ''),
    gateway: view?.gateway ?? '',
    dns: view?.dns.join(', ') ?? '',
    mtu: String(view?.mtu ?? ''),
  }),
  body: (form): Schemas['InterfaceConfigRequestInput'] => {
    const fixed = form.method === 'static'
    return {
      method: form.method as Schemas['InterfaceMethodInput'],
      address: fixed ? textOf(form.address) : null,
      prefix: fixed ? numberOf(form.prefix) : null,
      gateway: fixed ? textOf(form.gateway) : null,
      dns: fixed ? wordsOf(form.dns) : [],
      mtu: numberOf(form.mtu),
    }
  },
})

function Form({ view, etag }: { view: View; etag: string | null }) {
  const words = useText().network.interfaces
  const edit = useObjectEdit(interfaceConfigs, { data: view, etag })
  const fixed = edit.draft.value.method === 'static'
  const isProtected = edit.error instanceof ApiError && edit.error.code === 'interface_protected'
  return (
    <>
      {isProtected ? (
        <div className="banner banner--plain" role="status">
          <span className="strong">{words.protectedTitle}</span>
          <span>{words.protectedHint}</span>
        </div>
      ) : null}
      <EditForm edit={edit}>
        <FormFields
          draft={edit.draft}
          texts={words.fields}
          error={edit.problems}
          fields={[
            { field: 'method', kind: 'select', options: Object.entries(words.methodOptions) },
            { field: 'mtu', kind: 'number', min: 576, max: 65535 },
            fixed && { field: 'address', required: true },
            fixed && { field: 'prefix', kind: 'number', required: true, min: 0, max: 128 },
            fixed && { field: 'gateway' },
            fixed && { field: 'dns' },
          ]}
        />
      </EditForm>
    </>
  )
}

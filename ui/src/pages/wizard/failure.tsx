// Step 6: what happens if the tunnel is down, for the first device. The policy is stored and applied.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Select, TextField } from '@/components/fields'
import { useAdoption } from '@/components/hosts/adoption'
import { lineOf, nameOf, useStrangers } from '@/components/hosts/hosts'
import { MacField } from '@/components/hosts/mac-field'
import { PickOne } from '@/components/picker'
import { HopChip, Path } from '@/components/path'
import { Failure } from '@/components/section'
import { Tag } from '@/components/state'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { firstPriority, policyOf } from './first-policy'
import { StepPage, type StepProps } from './step'

type Mode = 'fail-closed' | 'fail-open'
const NEW = 'new'

export function FailureStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.failure
  const tunnels = useGet('/tunnels').data?.data ?? []
  const policies = useGet('/routing/policies').data?.data ?? []
  const pending = useGet('/status').data?.data.pending_changes ?? false
  const [mode, setMode] = useState<Mode>('fail-closed')
  const [tunnelId, setTunnel] = useState(props.progress.tunnel)
  const tunnel = tunnels.find((each) => each.id === tunnelId) ?? tunnels[0]
  const subject = useSubject(props.progress.device)
  const existing = subject.device ? policyOf(policies, subject.device) : undefined
  const save = useFormAction(
    async () => {
      if (!tunnel) throw new Error(t.noTunnel)
      const { id, name } = await subject.make()
      await storePolicy(existing, {
        name: t.policyName(name),
        priority: firstPriority(policies),
        source_value: id,
        hops: [{ type: 'vpn', target: tunnel.name }],
        fail_policy: mode,
      })
      const applied = await call(client.POST('/routing/policies/apply'))
      return { ...applied, data: { subject: { id, name }, tunnel } }
    },
    (data) => {
      props.finish(t.summary(mode), { device: data.subject.id, tunnel: data.tunnel.id })
      return t.applied(data.subject.name, data.tunnel.name)
    },
  )
  const error = save.error instanceof ApiError ? save.error : undefined
  return (
    <StepPage
      {...props}
      step="failure"
      title={t.title}
      lead={t.lead}
      action={t.save}
      onAction={() => save.run()}
      busy={save.busy}
      disabled={!tunnel || !subject.complete}
    >
      <Failure error={save.error} />
      <ModeChoice mode={mode} onChoose={setMode} tunnel={tunnel?.name ?? t.tunnel} />
      {tunnel ? (
        <div className="form">
          <Select
            label={t.tunnel}
            value={tunnel.id}
            options={tunnels.map((each) => [each.id, each.name] as const)}
            onChange={setTunnel}
          />
          <SubjectFields subject={subject} error={error} />
          {existing ? <p className="mid">{t.exists(existing.name)}</p> : null}
          {pending ? <p className="mid">{t.pending}</p> : null}
        </div>
      ) : (
        <p>{t.noTunnel}</p>
      )}
    </StepPage>
  )
}

/** Whom the policy is for: a device, a host that becomes one, or a new device. */
function useSubject(first: string | undefined) {
  const { data, isPending } = useGet('/devices')
  const devices = data?.data ?? []
  const strangers = useStrangers() ?? []
  const adopt = useAdoption()
  const [id, setId] = useState(first)
  const [fresh, setFresh] = useState<{ name: string | null; mac: string }>({ name: null, mac: '' })
  const chosen = id ?? devices[0]?.id ?? NEW
  const device = devices.find((each) => each.id === chosen)
  const host = strangers.find((each) => hostKey(each.id) === chosen)
  const name = fresh.name ?? (host ? nameOf(host) : '')
  return {
    devices,
    strangers,
    isPending,
    device,
    host,
    name,
    mac: fresh.mac,
    setFresh,
    value: device?.id ?? (host ? chosen : NEW),
    choose: (next: string) => {
      setId(next)
      setFresh({ name: null, mac: '' })
    },
    complete: device !== undefined || (name !== '' && (host !== undefined || fresh.mac !== '')),
    make: async () => {
      const made =
        device ??
        (host
          ? (await adopt.mutateAsync({ id: host.id, name })).data
          : await addDevice({ name, mac: fresh.mac }))
      // Another try must not make it twice.
      setId(made.id)
      return made
    },
  }
}

type NewPolicy = Pick<
  Schemas['RoutingPolicyInput'],
  'name' | 'priority' | 'source_value' | 'hops' | 'fail_policy'
>

/** Stores the policy, over the one that the device has. */
async function storePolicy(existing: Schemas['RoutingPolicy'] | undefined, policy: NewPolicy) {
  if (!existing) {
    const body = { ...policy, enabled: true, source_type: 'device' } as Schemas['RoutingPolicyInput']
    await call(client.POST('/routing/policies', { body }))
    return
  }
  const { hops, fail_policy } = policy
  const path = { id: existing.id }
  const now = await call(client.GET('/routing/policies/{id}', { params: { path } }))
  await call(
    client.PUT('/routing/policies/{id}', {
      params: { path, header: now.etag ? { 'If-Match': now.etag } : {} },
      body: { ...now.data, enabled: true, hops, fail_policy },
    }),
  )
}

function ModeChoice({ mode, onChoose, tunnel }: Pick<ChoiceProps, 'mode' | 'onChoose'> & { tunnel: string }) {
  const t = useText().wizard.failure
  return (
    <fieldset className="choices">
      <legend className="sub">{t.choice}</legend>
      <Choice
        mode="fail-closed"
        chosen={mode}
        onChoose={onChoose}
        title={t.closed}
        what={t.closedWhat}
        tag={t.recommended}
      >
        <Path joining="line">
          <HopChip state="down" name={tunnel} />
          <HopChip state="blocked" name={t.blocked} />
        </Path>
      </Choice>
      <Choice mode="fail-open" chosen={mode} onChoose={onChoose} title={t.open} what={t.openWhat}>
        <Path joining="or">
          <HopChip state="down" name={tunnel} />
          <HopChip state="direct" name="DIRECT" />
        </Path>
      </Choice>
    </fieldset>
  )
}

interface SubjectProps {
  subject: ReturnType<typeof useSubject>
  error: ApiError | undefined
}

function SubjectFields({ subject, error }: SubjectProps) {
  const text = useText()
  const t = text.wizard.failure
  const { devices, strangers, device, host, name, mac, setFresh } = subject
  return (
    <>
      <PickOne
        label={t.device}
        value={subject.value}
        options={[
          ...devices.map((each) => [each.id, each.name] as const),
          ...strangers.map((each) => [hostKey(each.id), text.hosts.pick.group(lineOf(each, text))] as const),
          [NEW, t.newDevice] as const,
        ]}
        loading={subject.isPending}
        onChange={subject.choose}
      />
      {device ? null : (
        <TextField
          label={t.deviceName}
          value={name}
          error={error?.of('name')}
          onChange={(typed) => setFresh((now) => ({ ...now, name: typed }))}
          autoComplete="off"
          required
        />
      )}
      {device || host ? null : (
        <MacField
          label={t.mac}
          hint={
            <>
              {t.macHint} {strangers.length > 0 ? text.hosts.pick.macHint : ''}
            </>
          }
          value={mac}
          error={error?.of('mac')}
          strangers
          onChange={(typed) => setFresh((now) => ({ ...now, mac: typed }))}
          onChoose={(chosen) => setFresh((now) => ({ mac: chosen.mac, name: now.name ?? nameOf(chosen) }))}
          required
        />
      )}
    </>
  )
}

/** The value of a host in the choice of the device. */
function hostKey(id: string): string {
  return `host:${id}`
}

async function addDevice({ name, mac }: { name: string; mac: string }) {
  // The other fields take their defaults.
  const body = { name, mac: mac || null } as Schemas['DeviceInput']
  return (await call(client.POST('/devices', { body }))).data
}

interface ChoiceProps {
  mode: Mode
  chosen: Mode
  onChoose: (mode: Mode) => void
  title: string
  what: string
  tag?: string
  children: React.ReactNode
}

function Choice({ mode, chosen, onChoose, title, what, tag, children }: ChoiceProps) {
  return (
    <label className={mode === chosen ? 'choice choice--on' : 'choice'}>
      <input
        type="radio"
        name="failure"
        className="pick"
        checked={mode === chosen}
        onChange={() => onChoose(mode)}
      />
      <span className="choice__t">
        <span className="strong">{title}</span> {tag ? <Tag>{tag}</Tag> : null}
      </span>
      <span className="choice__p">{children}</span>
      <span className="mid">{what}</span>
    </label>
  )
}

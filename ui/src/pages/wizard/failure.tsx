// Step 6: what happens if the tunnel is down, for the first device. The policy is stored and applied.

import { useState } from 'react'
import { ApiError, call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { say } from '@/session/toasts'
import { ErrorSummary, Select, TextField } from '@/components/fields'
import { useAdoption } from '@/components/hosts/adoption'
import { lineOf, nameOf, useStrangers } from '@/components/hosts/hosts'
import { MacField } from '@/components/hosts/mac-field'
import { PickOne } from '@/components/picker'
import { HopChip, Path } from '@/components/path'
import { Failure } from '@/components/section'
import { Tag } from '@/components/state'
import { useText } from '@/text'
import { firstPriority, policyOf } from './first-policy'
import { StepPage, type StepProps } from './step'

type Mode = 'fail-closed' | 'fail-open'
const NEW = 'new'

export function FailureStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.failure
  const tunnels = useGet('/tunnels').data?.data ?? []
  const { data, isPending } = useGet('/devices')
  const devices = data?.data ?? []
  const policies = useGet('/routing/policies').data?.data ?? []
  const pending = useGet('/status').data?.data.pending_changes ?? false
  const [mode, setMode] = useState<Mode>('fail-closed')
  const [tunnelId, setTunnel] = useState(props.progress.tunnel)
  const [deviceId, setDevice] = useState(props.progress.device)
  const [fresh, setFresh] = useState<{ name: string | null; mac: string }>({ name: null, mac: '' })
  const tunnel = tunnels.find((each) => each.id === tunnelId) ?? tunnels[0]
  const strangers = useStrangers() ?? []
  const adopt = useAdoption()
  const chosen = deviceId ?? devices[0]?.id ?? NEW
  const device = devices.find((each) => each.id === chosen)
  const host = strangers.find((each) => hostKey(each.id) === chosen)
  const named = fresh.name ?? (host ? nameOf(host) : '')
  const existing = device ? policyOf(policies, device) : undefined
  const save = useChange(async () => {
    if (!tunnel) throw new Error(t.noTunnel)
    const subject =
      device ??
      (host
        ? (await adopt.mutateAsync({ id: host.id, name: named })).data
        : await addDevice({ name: named, mac: fresh.mac }))
    // Another try must not make it twice.
    setDevice(subject.id)
    const hops: Schemas['HopInput'][] = [{ type: 'vpn', target: tunnel.name }]
    if (existing) {
      const path = { id: existing.id }
      const now = await call(client.GET('/routing/policies/{id}', { params: { path } }))
      await call(
        client.PUT('/routing/policies/{id}', {
          params: { path, header: now.etag ? { 'If-Match': now.etag } : {} },
          body: { ...now.data, enabled: true, hops, fail_policy: mode },
        }),
      )
    } else
      await call(
        client.POST('/routing/policies', {
          body: {
            name: t.policyName(subject.name),
            priority: firstPriority(policies),
            enabled: true,
            source_type: 'device',
            source_value: subject.id,
            hops,
            fail_policy: mode,
          } as Schemas['RoutingPolicyInput'],
        }),
      )
    const applied = await call(client.POST('/routing/policies/apply'))
    return { ...applied, data: { subject, tunnel } }
  })
  const error = save.error instanceof ApiError ? save.error : undefined
  return (
    <StepPage
      {...props}
      step="failure"
      title={t.title}
      lead={t.lead}
      action={t.save}
      onAction={() =>
        save.mutate(undefined, {
          onSuccess: ({ data, warnings }) => {
            say(t.applied(data.subject.name, data.tunnel.name), warnings)
            props.finish(t.summary(mode), { device: data.subject.id, tunnel: data.tunnel.id })
          },
        })
      }
      busy={save.isPending}
      disabled={!tunnel || (!device && (named === '' || (!host && fresh.mac === '')))}
    >
      {error ? <ErrorSummary error={error} /> : save.error ? <Failure error={save.error} /> : null}
      <fieldset className="choices">
        <legend className="sub">{t.choice}</legend>
        <Choice
          mode="fail-closed"
          chosen={mode}
          onChoose={setMode}
          title={t.closed}
          what={t.closedWhat}
          tag={t.recommended}
        >
          <Path joining="line">
            <HopChip state="down" name={tunnel?.name ?? t.tunnel} />
            <HopChip state="blocked" name={t.blocked} />
          </Path>
        </Choice>
        <Choice mode="fail-open" chosen={mode} onChoose={setMode} title={t.open} what={t.openWhat}>
          <Path joining="or">
            <HopChip state="down" name={tunnel?.name ?? t.tunnel} />
            <HopChip state="direct" name="DIRECT" />
          </Path>
        </Choice>
      </fieldset>
      {tunnel ? (
        <div className="form">
          <Select
            label={t.tunnel}
            value={tunnel.id}
            options={tunnels.map((each) => [each.id, each.name] as const)}
            onChange={setTunnel}
          />
          <PickOne
            label={t.device}
            value={device?.id ?? (host ? chosen : NEW)}
            options={[
              ...devices.map((each) => [each.id, each.name] as const),
              ...strangers.map(
                (each) => [hostKey(each.id), text.hosts.pick.group(lineOf(each, text))] as const,
              ),
              [NEW, t.newDevice] as const,
            ]}
            loading={isPending}
            onChange={(next) => {
              setDevice(next)
              setFresh({ name: null, mac: '' })
            }}
          />
          {device ? null : (
            <>
              <TextField
                label={t.deviceName}
                value={named}
                error={error?.of('name')}
                onChange={(name) => setFresh({ ...fresh, name })}
                autoComplete="off"
                required
              />
              {host ? null : (
                <MacField
                  label={t.mac}
                  hint={
                    <>
                      {t.macHint} {strangers.length > 0 ? text.hosts.pick.macHint : ''}
                    </>
                  }
                  value={fresh.mac}
                  error={error?.of('mac')}
                  strangers
                  onChange={(mac) => setFresh((now) => ({ ...now, mac }))}
                  onChoose={(chosen) =>
                    setFresh((now) => ({ mac: chosen.mac, name: now.name ?? nameOf(chosen) }))
                  }
                  required
                />
              )}
            </>
          )}
          {existing ? <p className="mid">{t.exists(existing.name)}</p> : null}
          {pending ? <p className="mid">{t.pending}</p> : null}
        </div>
      ) : (
        <p>{t.noTunnel}</p>
      )}
    </StepPage>
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

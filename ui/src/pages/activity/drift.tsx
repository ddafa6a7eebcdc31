// The plan and the kernel: the self-test, what other programs changed, and what is enforced.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection, Empty, Loaded } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { Enforced } from './enforced'

export default function DriftPage() {
  const text = useText()
  const t = text.activity.drift
  const verify = useGet('/verify')
  const drift = useGet('/drift')
  const enforce = useGet('/enforce')
  const reconcile = useAction(
    () => call(client.POST('/enforce/reconcile')),
    (data) => (data.ok ? t.reconciled(data.duration_ms, data.drift) : t.notOk),
  )
  return (
    <Page
      question={t.question}
      actions={
        <Button kind="primary" icon="refresh" needs="operator" does={reconcile}>
          {t.reconcile}
        </Button>
      }
      answer={
        <Sentence
          verification={verify.error ? undefined : verify.data?.data}
          drifts={drift.error ? undefined : drift.data?.data.length}
          loading={verify.isPending}
        />
      }
    >
      <LoadedSection
        title={t.selfTest}
        hint={verify.data ? t.generation(verify.data.data.generation) : undefined}
        query={verify}
        lines={4}
      >
        {(verification) => (
          <ul className="selftest">
            {verification.checks.map((check) => (
              <li key={check.name}>
                <span className="med">{check.name}</span>
                <CheckWord ok={check.ok} />
                <span className="mid" lang="en">
                  {check.detail}
                </span>
              </li>
            ))}
          </ul>
        )}
      </LoadedSection>
      <LoadedSection
        title={t.found}
        hint={t.foundHint}
        query={drift}
        empty={<Empty command="gateway-ctl drift">{t.noDrift}</Empty>}
      >
        {(list) => <Found drifts={list} />}
      </LoadedSection>
      <Loaded query={enforce} lines={8}>
        {(enforcement) => <Enforced enforcement={enforcement} />}
      </Loaded>
    </Page>
  )
}

interface SentenceProps {
  verification: Schemas['Verification'] | undefined
  drifts: number | undefined
  loading: boolean
}

function Sentence({ verification, drifts, loading }: SentenceProps) {
  const text = useText()
  const t = text.activity.drift
  if (loading) return <>{text.common.loading}</>
  if (!verification) return <>{t.unknown}</>
  const pass = verification.checks.filter((check) => check.ok === true).length
  const found = drifts === undefined ? '' : t.drifts(drifts)
  return (
    <>
      {verification.ok ? `${t.yes} (${t.checksPass(pass, verification.checks.length)})` : null}
      {verification.ok ? null : `${t.no} ${t.checksPass(pass, verification.checks.length)}`}
      {found ? `; ${found}` : '.'}
    </>
  )
}

function CheckWord({ ok }: { ok: boolean | null }) {
  const text = useText()
  const t = text.activity.drift
  if (ok === null) return <StateWord state="unknown">{t.notRun}</StateWord>
  return ok ? <StateWord state="ok">{t.pass}</StateWord> : <StateWord state="degraded">{t.fail}</StateWord>
}

function Found({ drifts }: { drifts: Schemas['Drift'][] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <Table
      label={t.found}
      rows={drifts}
      id={(drift, index) => `${drift.detected_at} ${drift.resource} ${drift.field} ${index}`}
      columns={[
        { head: t.time, className: 'nowrap', cell: (drift) => <Age time={drift.detected_at} /> },
        {
          head: t.resource,
          cell: (drift) => (
            <TwoLines second={drift.type}>
              <span className="med">{drift.resource}</span>
            </TwoLines>
          ),
        },
        { head: t.field, cell: (drift) => <code>{drift.field || '-'}</code> },
        { head: t.expected, cell: (drift) => <code className="wrap">{drift.expected || '-'}</code> },
        { head: t.actual, cell: (drift) => <code className="wrap">{drift.actual || '-'}</code> },
        {
          head: t.state,
          cell: (drift) =>
            drift.repaired ? (
              <StateWord state="ok">{t.repaired}</StateWord>
            ) : (
              <StateWord state="degraded">{t.open}</StateWord>
            ),
        },
      ]}
    />
  )
}

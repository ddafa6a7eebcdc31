// What the kernel enforces: policies in their order, egresses, and programs at interfaces.

import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { Empty, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'

const STATUS: Record<string, State> = {
  active: 'ok',
  degraded: 'degraded',
  fallback: 'degraded',
  blocked: 'blocked',
  error: 'down',
  disabled: 'idle',
  pending: 'idle',
}

export function Enforced({ enforcement }: { enforcement: Schemas['Enforcement'] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <>
      {enforcement.findings.length > 0 ? (
        <Section title={t.findings}>
          <ul className="rows rows--alert">
            {enforcement.findings.map((finding, index) => (
              <li key={`${finding.code} ${index}`}>
                <StateWord state="degraded">{''}</StateWord>
                <span lang="en">{finding.message}</span>
                <code className="dim">{finding.code}</code>
              </li>
            ))}
          </ul>
        </Section>
      ) : null}
      <Section title={t.enforced} hint={t.enforcedHint}>
        {enforcement.policies.length === 0 ? (
          <Empty>{t.noPolicies}</Empty>
        ) : (
          <Policies policies={enforcement.policies} />
        )}
        <p className="dim">
          {t.unmatched(enforcement.unmatched)} {t.noPlan(enforcement.no_plan)}
        </p>
      </Section>
      <Section title={t.legs} hint={t.legsHint}>
        <Legs legs={enforcement.legs} />
      </Section>
      <Section title={t.programs}>
        <Table
          label={t.programs}
          rows={enforcement.attach}
          id={(each) => `${each.interface} ${each.program}`}
          dense
          columns={[
            { head: t.interface, bare: true, className: 'med mono', cell: (each) => each.interface },
            { head: t.program, cell: (each) => each.program },
            {
              head: t.state,
              cell: (each) =>
                each.present ? (
                  <StateWord state="ok">{t.present}</StateWord>
                ) : (
                  <StateWord state="idle">{t.absent}</StateWord>
                ),
            },
          ]}
        />
      </Section>
    </>
  )
}

function Policies({ policies }: { policies: Schemas['PolicyEnforcement'][] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <Table
      label={t.enforced}
      rows={policies}
      id={(policy) => policy.id}
      columns={[
        { head: t.priority, numeric: true, cell: (policy) => policy.priority },
        {
          head: t.policy,
          bare: true,
          cell: (policy) => (
            <TwoLines second={policy.matches.join('; ')}>
              <span className="med">
                <Link to={`/policies/${policy.id}`}>{policy.name}</Link>
              </span>
            </TwoLines>
          ),
        },
        { head: t.ipv4, cell: (policy) => policy.action.ipv4 },
        { head: t.ipv6, cell: (policy) => policy.action.ipv6 },
        { head: t.onFailure, cell: (policy) => policy.fail_policy },
        {
          head: t.now,
          cell: (policy) => (
            <StateWord state={STATUS[policy.status] ?? 'unknown'}>{t.status[policy.status]}</StateWord>
          ),
        },
      ]}
    />
  )
}

function Legs({ legs }: { legs: Schemas['LegView'][] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <Table
      label={t.legs}
      rows={legs}
      id={(leg) => leg.number}
      columns={[
        { head: t.leg, numeric: true, cell: (leg) => leg.number },
        {
          head: t.interface,
          bare: true,
          cell: (leg) => (
            <TwoLines second={leg.kind}>
              <span className="med mono">
                {leg.tunnel_id ? (
                  <Link to={`/paths/tunnels/${leg.tunnel_id}`}>{leg.interface}</Link>
                ) : (
                  leg.interface
                )}
              </span>
            </TwoLines>
          ),
        },
        { head: t.mark, cell: (leg) => <code>{leg.mark}</code> },
        { head: t.table, numeric: true, cell: (leg) => leg.table },
        { head: t.mtu, numeric: true, cell: (leg) => leg.mtu },
        {
          head: t.now,
          cell: (leg) => (
            <span className="two">
              {leg.usable ? (
                <StateWord state="ok">{t.usable}</StateWord>
              ) : (
                <StateWord state="down">{t.notUsable}</StateWord>
              )}
              {leg.reason ? <small lang="en">{leg.reason}</small> : null}
            </span>
          ),
        },
      ]}
    />
  )
}

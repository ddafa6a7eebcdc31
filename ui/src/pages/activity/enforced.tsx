// What the kernel enforces: policies in their order, egresses, and programs at interfaces.

import type { Schemas } from '@/api/client'
import { Link } from '@/session/link'
import { Empty, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
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
        <table className="tbl tbl--card tbl--dense" aria-label={t.programs}>
          <thead>
            <tr>
              <th scope="col">{t.interface}</th>
              <th scope="col">{t.program}</th>
              <th scope="col">{t.state}</th>
            </tr>
          </thead>
          <tbody>
            {enforcement.attach.map((each) => (
              <tr key={`${each.interface} ${each.program}`}>
                <td className="med mono">{each.interface}</td>
                <td data-l={t.program}>{each.program}</td>
                <td data-l={t.state}>
                  {each.present ? (
                    <StateWord state="ok">{t.present}</StateWord>
                  ) : (
                    <StateWord state="idle">{t.absent}</StateWord>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
    </>
  )
}

function Policies({ policies }: { policies: Schemas['PolicyEnforcement'][] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <table className="tbl tbl--card" aria-label={t.enforced}>
      <thead>
        <tr>
          <th scope="col" className="num">
            {t.priority}
          </th>
          <th scope="col">{t.policy}</th>
          <th scope="col">{t.ipv4}</th>
          <th scope="col">{t.ipv6}</th>
          <th scope="col">{t.onFailure}</th>
          <th scope="col">{t.now}</th>
        </tr>
      </thead>
      <tbody>
        {policies.map((policy) => (
          <tr key={policy.id}>
            <td className="num" data-l={t.priority}>
              {policy.priority}
            </td>
            <td>
              <span className="two">
                <span className="med">
                  <Link to={`/policies/${policy.id}`}>{policy.name}</Link>
                </span>
                <small>{policy.matches.join('; ')}</small>
              </span>
            </td>
            <td data-l={t.ipv4}>{policy.action.ipv4}</td>
            <td data-l={t.ipv6}>{policy.action.ipv6}</td>
            <td data-l={t.onFailure}>{policy.fail_policy}</td>
            <td data-l={t.now}>
              <StateWord state={STATUS[policy.status] ?? 'unknown'}>
                {t.status[policy.status] ?? policy.status}
              </StateWord>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Legs({ legs }: { legs: Schemas['LegView'][] }) {
  const text = useText()
  const t = text.activity.drift
  return (
    <table className="tbl tbl--card" aria-label={t.legs}>
      <thead>
        <tr>
          <th scope="col" className="num">
            {t.leg}
          </th>
          <th scope="col">{t.interface}</th>
          <th scope="col">{t.mark}</th>
          <th scope="col" className="num">
            {t.table}
          </th>
          <th scope="col" className="num">
            {t.mtu}
          </th>
          <th scope="col">{t.now}</th>
        </tr>
      </thead>
      <tbody>
        {legs.map((leg) => (
          <tr key={leg.number}>
            <td className="num" data-l={t.leg}>
              {leg.number}
            </td>
            <td>
              <span className="two">
                <span className="med mono">
                  {leg.tunnel_id ? (
                    <Link to={`/paths/tunnels/${leg.tunnel_id}`}>{leg.interface}</Link>
                  ) : (
                    leg.interface
                  )}
                </span>
                <small>{leg.kind}</small>
              </span>
            </td>
            <td data-l={t.mark}>
              <code>{leg.mark}</code>
            </td>
            <td className="num" data-l={t.table}>
              {leg.table}
            </td>
            <td className="num" data-l={t.mtu}>
              {leg.mtu}
            </td>
            <td data-l={t.now}>
              <span className="two">
                {leg.usable ? (
                  <StateWord state="ok">{t.usable}</StateWord>
                ) : (
                  <StateWord state="down">{t.notUsable}</StateWord>
                )}
                {leg.reason ? <small lang="en">{leg.reason}</small> : null}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

// The filter rules for a device alone: those whose scope names it or one of its groups.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { LinkButton } from '@/components/link-button'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'

type Rule = Schemas['DnsFilterRule']

export function DeviceRules({ device }: { device: Schemas['Device'] }) {
  const text = useText()
  const words = text.devices.dns
  const query = useGet('/dns/filter-rules')
  const groups = device.groups ?? []
  const isForIt = ({ scope }: Rule) =>
    scope.devices.includes(device.id) || scope.groups.some((id) => groups.includes(id))
  return (
    <LoadedSection
      title={words.rules}
      hint={words.rulesHint}
      actions={
        <LinkButton
          size="small"
          icon="plus"
          needs="operator"
          to="/dns/lists"
          search={{ edit: 'rule:new', for: device.id }}
        >
          {words.addRule}
        </LinkButton>
      }
      query={query}
      isEmpty={(all) => !all.some(isForIt)}
      empty={<Empty>{words.noRules}</Empty>}
    >
      {(all) => (
        <ul className="rows">
          {all.filter(isForIt).map((rule) => (
            <li key={rule.id}>
              <Link className="mono" to="/dns/lists" search={{ edit: `rule:${rule.id}` }}>
                {rule.pattern}
              </Link>
              <StateWord state={stateOf(rule)}>
                {rule.enabled ? text.dns.lists.rules.actions[rule.action] : text.common.off}
              </StateWord>
            </li>
          ))}
        </ul>
      )}
    </LoadedSection>
  )
}

function stateOf({ enabled, action }: Rule) {
  if (!enabled) return 'idle'
  return action === 'block' || action === 'nxdomain' || action === 'refuse' ? 'blocked' : 'ok'
}

// What the host must have, from what the daemon says about it.

import type { Schemas } from '@/api/client'
import type { Text } from '@/text'
import { formatBytes } from '@/text/format'

export interface GroundCheck {
  name: string
  state: 'ok' | 'problem' | 'unknown'
  detail: string
}

export interface Ground {
  health: Schemas['ServiceHealth'] | undefined
  platform: Schemas['Platform'] | undefined
  interfaces: Schemas['Interface'][] | undefined
  verification: Schemas['Verification'] | undefined
  observer: Schemas['Observation'][] | undefined
}

/** The checks of the ground. What was not answered is unknown, never fine. */
export function groundChecks(ground: Ground, text: Text): GroundCheck[] {
  const t = text.wizard.ground
  const unknown = (name: string): GroundCheck => ({ name, state: 'unknown', detail: '-' })
  const check = (name: string, fine: boolean, detail: string): GroundCheck => ({
    name,
    state: fine ? 'ok' : 'problem',
    detail,
  })
  const { health, platform, interfaces, verification, observer } = ground
  const dns = observer?.filter((part) => /^dns-\d+$/.test(part.subsystem))
  const clock = observer?.find((part) => part.subsystem === 'time_server')
  const others = observer?.filter((part) => !dns?.includes(part) && part !== clock)
  const wires = interfaces?.filter((each) => each.role !== 'loopback' && each.role !== 'tunnel')
  return [
    health
      ? check(
          t.enforcing,
          health.status === 'ok',
          health.reason ?? text.system.about.health[health.status] ?? health.status,
        )
      : unknown(t.enforcing),
    platform
      ? check(
          t.kernel,
          platform.ebpf.btf,
          `${platform.kernel}, ${platform.ebpf.mode}${platform.ebpf.btf ? '' : `, ${t.noBtf}`}`,
        )
      : unknown(t.kernel),
    wires ? check(t.interfaces, wires.length >= 2, t.found(wires.length)) : unknown(t.interfaces),
    verification
      ? check(
          t.rules,
          verification.ok,
          verification.ok
            ? t.rulesFine
            : verification.checks
                .filter((each) => each.ok === false)
                .map((each) => each.detail)
                .join(' '),
        )
      : unknown(t.rules),
    dns
      ? check(
          t.dns,
          dns.length > 0 && dns.every((part) => part.state === 'ok'),
          problems(dns) || (dns.length === 0 ? t.dnsNone : t.dnsFine(dns.length)),
        )
      : unknown(t.dns),
    clock ? check(t.clock, clock.state === 'ok', clock.message || t.clockFine) : unknown(t.clock),
    others
      ? check(
          t.others,
          others.every((part) => part.state === 'ok'),
          problems(others) || t.othersFine(others.length),
        )
      : unknown(t.others),
    platform
      ? check(
          t.memory,
          platform.memory.available > 64_000_000,
          t.free(formatBytes(platform.memory.available), formatBytes(platform.memory.total)),
        )
      : unknown(t.memory),
  ]
}

function problems(parts: Schemas['Observation'][]): string {
  return parts
    .filter((part) => part.state !== 'ok')
    .map((part) => (part.message ? `${part.subsystem}: ${part.message}` : part.subsystem))
    .join('; ')
}

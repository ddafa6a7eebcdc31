import { describe, expect, it } from 'vitest'
import type { Schemas } from '@/api/client'
import { SAFE_SEARCH, SERVICES } from './service-catalogue'
import { changesOf, stateOf, type RuleChange } from './service-rules'

type Rule = Schemas['DnsFilterRule']

const ALL = [...SAFE_SEARCH, ...SERVICES]
const service = (id: string) => {
  const found = ALL.find((each) => each.id === id)
  if (!found) throw new Error(`no service ${id}`)
  return found
}

/** The rules after changes, as the gateway would have them. */
function after(rules: readonly Rule[], changes: readonly RuleChange[]): Rule[] {
  return changes.reduce<Rule[]>(
    (now, change) =>
      change.kind === 'create'
        ? [...now, { id: `rule-${change.fields.comment}`, ...change.fields } as unknown as Rule]
        : change.kind === 'remove'
          ? now.filter((rule) => rule !== change.rule)
          : now.map((rule) => (rule === change.rule ? ({ ...rule, ...change.fields } as Rule) : rule)),
    [...rules],
  )
}

const switched = (rules: readonly Rule[], id: string, device: string, on: boolean) =>
  after(rules, changesOf(service(id), device, on, rules))

describe('services of a device', () => {
  it('leave no rule behind when they are switched off', () => {
    for (const { id } of ALL) {
      const on = switched([], id, 'tablet', true)
      expect(stateOf(service(id), 'tablet', on)).toBe('on')
      expect(stateOf(service(id), 'laptop', on)).toBe('off')
      expect(switched(on, id, 'tablet', false)).toEqual([])
    }
  })

  it('share one rule among devices, and the last one takes it away', () => {
    const two = switched(switched([], 'tiktok', 'tablet', true), 'tiktok', 'phone', true)
    expect(two.map((rule) => rule.scope.devices)).toEqual([['tablet', 'phone']])
    const one = switched(two, 'tiktok', 'tablet', false)
    expect(stateOf(service('tiktok'), 'tablet', one)).toBe('off')
    expect(stateOf(service('tiktok'), 'phone', one)).toBe('on')
    expect(switched(one, 'tiktok', 'phone', false)).toEqual([])
  })

  it('never widen a rule to all devices', () => {
    const on = switched([], 'roblox', 'tablet', true)
    const grouped = on.map((rule) => ({ ...rule, scope: { ...rule.scope, groups: ['children'] } }))
    const off = switched(grouped, 'roblox', 'tablet', false)
    expect(off.map((rule) => rule.scope)).toEqual([
      { devices: [], groups: ['children'], privacy_class: null },
    ])
  })

  it('keep the schedule of a rule, and switch on one that is off', () => {
    const schedule = { days: ['mon'], start: '20:00', end: '22:00' } as unknown as Rule['schedule']
    const off = switched([], 'steam', 'tablet', true).map((rule) => ({ ...rule, schedule, enabled: false }))
    expect(stateOf(service('steam'), 'tablet', off)).toBe('off')
    const on = switched(off, 'steam', 'tablet', true)
    expect(on.map((rule) => [rule.enabled, rule.schedule])).toEqual([[true, schedule]])
  })

  it('are for everyone by a rule without a scope, which a device does not change', () => {
    const all = switched([], 'x', 'tablet', true).map((rule) => ({
      ...rule,
      scope: { devices: [], groups: [], privacy_class: null },
    }))
    expect(stateOf(service('x'), 'tablet', all)).toBe('everyone')
    expect(changesOf(service('x'), 'tablet', false, all)).toEqual([])
    expect(changesOf(service('x'), 'tablet', true, all)).toEqual([])
  })

  it('are there in part when a rule is missing', () => {
    const on = switched([], 'search', 'tablet', true)
    expect(stateOf(service('search'), 'tablet', on.slice(1))).toBe('partly')
    expect(stateOf(service('search'), 'tablet', switched(on.slice(1), 'search', 'tablet', true))).toBe('on')
  })
})

describe('patterns of services', () => {
  const matches = (id: string, name: string) =>
    service(id).rules.some(({ pattern }) => new RegExp(pattern).test(name))

  it('match the domains and their subdomains, and no others', () => {
    expect(matches('x', 'x.com')).toBe(true)
    expect(matches('x', 'abs.twimg.com')).toBe(true)
    expect(matches('x', 'netflix.com')).toBe(false)
    expect(matches('x', 'x.com.example.org')).toBe(false)
    expect(matches('x', 'xxcom')).toBe(false)
    expect(matches('youtube', 'r4---sn.googlevideo.com')).toBe(true)
    expect(matches('youtube', 'googleapis.com')).toBe(false)
  })

  it('of safe search leave other names of the same company alone', () => {
    for (const name of ['google.com', 'www.google.de', 'www.google.co.uk', 'www.google.com.br'])
      expect(matches('search', name)).toBe(true)
    for (const name of ['mail.google.com', 'forcesafesearch.google.com', 'google.example.com'])
      expect(matches('search', name)).toBe(false)
    expect(matches('youtube_restricted', 'restrict.youtube.com')).toBe(false)
  })

  it('have comments that are unique', () => {
    const comments = ALL.flatMap((each) => each.rules.map((rule) => rule.comment))
    expect(new Set(comments).size).toBe(comments.length)
  })
})

import { expect, it } from 'vitest'
import { causeOf, wayOf } from './log-table'

const down = (hops: string, several: boolean) => `${hops} ${several ? 'are' : 'is'} down`
const entry = (detail: string | null) =>
  ({ ede: { code: 0, text: 'Other', detail } }) as Parameters<typeof causeOf>[0]

it('names the hops that are down, without their kind', () => {
  expect(causeOf(entry('the policy "vpn: \\"only\\"" blocks: tunnel wg-a is down'), down)).toBe(
    'wg-a is down',
  )
  expect(causeOf(entry('the policy "x" blocks: tunnel wg-a, proxy p are down'), down)).toBe(
    'wg-a, p are down',
  )
})
it('keeps another reason as it is', () => {
  expect(causeOf(entry('the device is blocked'), down)).toBe('the device is blocked')
  expect(causeOf(entry(null), down)).toBe('')
})
it('tells a query that its policy blocks from one that failed, and one that left directly from one by a tunnel', () => {
  const of = (status: string, egress: string | null, detail: string | null) =>
    wayOf({ status, egress, ede: { code: 0, text: 'Other', detail } }, [{ interface: 'wan0' }])
  expect(of('error', null, 'the policy "x" blocks: tunnel wg-a is down')).toBe('blocked')
  expect(of('error', null, 'no upstream answered in time')).toBe(null)
  expect(of('forwarded', 'auto', null)).toBe('direct')
  expect(of('forwarded', 'wan0', null)).toBe('direct')
  expect(of('forwarded', 'wg-a', null)).toBe(null)
})

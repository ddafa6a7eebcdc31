import { expect, it } from 'vitest'
import { causeOf } from './entry-words'

const words = (hops: string, several: boolean) => `${hops} ${several ? 'are' : 'is'} down`
const entry = (down: string[], detail: string | null): Parameters<typeof causeOf>[0] => ({
  left_by: { kind: 'blocked', name: null, down, text: '' },
  ede: { code: 0, text: 'Other', detail },
})

it('names the hops that are down', () => {
  expect(causeOf(entry(['wg-a'], 'the policy "x" blocks: tunnel wg-a is down'), words)).toBe('wg-a is down')
  expect(causeOf(entry(['wg-a', 'p'], null), words)).toBe('wg-a, p are down')
})
it('keeps another reason as it is', () => {
  expect(causeOf(entry([], 'the device is blocked'), words)).toBe('the device is blocked')
  expect(causeOf(entry([], null), words)).toBe('')
})

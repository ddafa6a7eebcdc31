import { expect, it } from 'vitest'
import { replaced } from './tunnel-hops'

const tunnel = { id: '1', name: 'wg-a' }
const a = { type: 'vpn', target: 'wg-a' } as const
const byId = { type: 'vpn', target: '1' } as const
const b = { type: 'vpn', target: 'wg-b' } as const

it('replaces a tunnel by its name and its id, and keeps the other hops', () => {
  expect(replaced([a, b, byId], tunnel, 'wg-c')).toEqual([
    { type: 'vpn', target: 'wg-c' },
    b,
    { type: 'vpn', target: 'wg-c' },
  ])
})

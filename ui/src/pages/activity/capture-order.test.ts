import { expect, it } from 'vitest'
import { blank, filterOf, orderOf } from './capture-order'

const device = { mac: '02:00:00:00:00:01', macs: ['02:00:00:00:00:02'], ips: ['192.168.10.5', '2001:db8::5'] }

it('finds the packets of a device by its frames, else by its addresses', () => {
  expect(filterOf(device, true)).toBe('ether host 02:00:00:00:00:01 or ether host 02:00:00:00:00:02')
  expect(filterOf(device, false)).toBe('host 192.168.10.5 or host 2001:db8::5')
  expect(filterOf({ ...device, mac: null, macs: [] }, true)).toBe('host 192.168.10.5 or host 2001:db8::5')
  expect(filterOf({ mac: null, macs: [], ips: [] }, true)).toBeNull()
})

it('joins the filter of the device and the typed one', () => {
  expect(orderOf(blank, null)).toEqual({
    interface: 'lan',
    preset: null,
    filter: '',
    duration_sec: 300,
    count: 50_000,
    snaplen: 262_144,
    promiscuous: false,
  })
  const typed = { ...blank, preset: 'dns', filter: ' port 53 ' }
  expect(orderOf(typed, null)).toMatchObject({ preset: 'dns', filter: 'port 53' })
  expect(orderOf(typed, 'host 192.0.2.1 or host 192.0.2.2').filter).toBe(
    '(host 192.0.2.1 or host 192.0.2.2) and (port 53)',
  )
})

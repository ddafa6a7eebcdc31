// Forms offer the hosts that are there: a device, a reservation, the source of a policy and an exception are made without a
// MAC address being typed, and one can be typed all the same.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function hostPickers({ daemon, context, open }) {
  const { laptop, tv } = context.devices
  await daemon.hostsToBeSeen()
  const devices = () => daemon.api('GET', '/devices')
  const { page, watch, shot, close } = await open({ path: '/network/dhcp/new' })
  const main = page.locator('main')
  const button = (name) => main.getByRole('button', { name, exact: true })

  // A reservation: a part of the address finds the host, arrows and Enter choose it, its address is filled in.
  await settled(page)
  const mac = main.getByRole('combobox', { name: 'MAC address' })
  const offered = main.getByRole('listbox', { name: 'Hosts on the network' })
  await mac.click()
  await offered.getByRole('option').nth(1).waitFor()
  await mac.pressSequentially('192.168.10.20')
  await until('the one host', async () => (await offered.getByRole('option').count()) === 1)
  assert.match(await offered.getByRole('option').innerText(), new RegExp(tv))
  await shot('host-picker')
  assert.deepEqual(await violations(page), [])
  await mac.press('ArrowDown')
  await mac.press('Enter')
  await until('the MAC address', async () => (await mac.inputValue()) === tv)
  assert.equal(await offered.getByRole('option').count(), 0)
  assert.equal(await main.getByLabel('Address', { exact: true }).inputValue(), '192.168.10.20')
  await button('Create').click()
  await page.waitForURL('**/network/dhcp')
  const reserved = await daemon.api('GET', '/dhcp/reservations')
  assert.deepEqual(
    reserved.map((each) => [each.mac, each.ip]),
    [[tv, '192.168.10.20']],
  )

  // The source of a policy: a host becomes a device with a name, and is chosen.
  await page.goto('/policies/new')
  await settled(page)
  await main.getByLabel('Name', { exact: true }).fill('for the television')
  const pick = main.getByLabel('Or a host that is no device yet')
  const value = await pick.locator('option', { hasText: tv }).getAttribute('value')
  await pick.selectOption(value)
  await main.getByLabel('Name of the device').fill('television')
  await main.getByLabel('Name of the device').press('Enter')
  await main.getByRole('checkbox', { name: 'television' }).waitFor()
  await until('the device to be chosen', () => main.getByRole('checkbox', { name: 'television' }).isChecked())
  assert.equal((await daemon.api('GET', '/routing/policies')).length, 0, 'Enter has saved the policy')
  assert.deepEqual(
    (await devices()).map((device) => [device.name, device.mac]),
    [['television', tv]],
  )

  // An exception: the other host.
  await page.goto('/')
  await settled(page)
  await button('Allow for a while').click()
  const dialog = page.getByRole('dialog')
  const other = dialog.getByLabel('Or a host that is no device yet')
  await other.selectOption(await other.locator('option', { hasText: laptop }).getAttribute('value'))
  await dialog.getByLabel('Name of the device').fill('laptop')
  await dialog.getByRole('button', { name: 'Add as device' }).click()
  await other.waitFor({ state: 'detached' })
  await dialog.getByLabel('Reason', { exact: true }).fill('a film')
  await dialog.getByRole('button', { name: 'Allow', exact: true }).click()
  await dialog.waitFor({ state: 'hidden' })
  const [exception] = await daemon.api('GET', '/exceptions/active')
  assert.equal(exception.device_id, (await devices()).find((device) => device.mac === laptop).id)

  // All hosts are devices now. A device that was never seen is typed.
  await page.goto('/devices/new')
  await settled(page)
  await main.getByLabel('Name', { exact: true }).fill('printer')
  await main.getByRole('combobox', { name: 'MAC address' }).pressSequentially('02:00:00:00:00:77')
  await main.getByRole('combobox', { name: 'MAC address' }).press('Enter')
  await until('the typed device', async () =>
    (await devices()).some((device) => device.name === 'printer' && device.mac === '02:00:00:00:00:77'),
  )
  watch.assertClean()
  await close()
}

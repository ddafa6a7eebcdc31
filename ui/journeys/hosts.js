// Hosts that are no device: the verdict is amber and says its share, the overview lists them, one becomes a device by keys,
// one is blocked, one is hidden, and each page says what is known of them.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { Keys } from './lib/keys.js'
import { settled } from './lib/pages.js'

export default async function hosts({ daemon, context, open }) {
  const { laptop, tv } = context.devices
  await daemon.hostsToBeSeen()

  const { page, watch, shot, close } = await open()
  const keys = new Keys(page)
  await settled(page)
  const dialog = page.getByRole('dialog')
  const inbox = page.getByRole('table', { name: 'Hosts without a decision' })
  const row = (mac) => inbox.getByRole('row').filter({ hasText: mac })
  await row(laptop).waitFor()
  await row(tv).waitFor()

  // The verdict is not green while they leave without a decision.
  const chip = page.locator('.top .chip')
  await until('the share', async () => /^\s*OK\s+0 of 2 hosts/.test(await chip.innerText()))
  assert.match(await chip.getAttribute('class'), /chip--direct/)
  await page.getByRole('link', { name: 'Show the 2 hosts that leave directly' }).waitFor()
  assert.equal(await page.locator('.chip--ok, .v-ok').count(), 0)
  assert.match(await row(tv).innerText(), /direct, no policy/)
  await shot('inbox')
  assert.deepEqual(await violations(page), [])

  // One becomes a device, by keys.
  const name = await row(laptop).getByRole('link').first().innerText()
  await keys.reach(new RegExp(`^BUTTON Add as device: ${name}`))
  await keys.press('Enter')
  await dialog.waitFor()
  await until('the focus on the name', async () => /^INPUT Name/.test(await keys.focused()))
  assert.deepEqual(await keys.walk('dialog[open]'), [])
  assert.deepEqual(await violations(page), [])
  await keys.reach(/^INPUT Name/)
  await keys.press('Control+a')
  await keys.type('work laptop')
  await keys.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  await page.getByText('work laptop is a device now.').waitFor()
  await row(laptop).waitFor({ state: 'detached' })
  const devices = await daemon.api('GET', '/devices')
  assert.deepEqual(
    devices.map((device) => [device.name, device.mac, device.status]),
    [['work laptop', laptop, 'known']],
  )

  // The other is hidden, shown again, and blocked; then it does not reach the internet.
  const choose = async (item) => {
    await row(tv)
      .getByRole('button', { name: /^Actions for/ })
      .click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }
  await choose('Hide in this browser')
  await page.getByText('1 host is hidden in this browser.').waitFor()
  await row(tv).waitFor({ state: 'detached' })
  await page.reload()
  await page.getByRole('button', { name: 'Show them' }).click()
  await row(tv).waitFor()
  const reaches = () => daemon.on('tv', 'curl', '-s', '-m', '2', 'http://198.18.0.1/ip')
  await until('the television to leave', reaches)
  await choose('Block')
  await dialog.getByLabel('Name', { exact: true }).fill('television')
  await dialog.getByRole('button', { name: 'Block', exact: true }).click()
  await page.getByText('television is blocked now.').waitFor()
  await until('the television to be cut off', async () => (await reaches()) === '')
  await page.getByText('Every host that has answered the gateway is a device.').waitFor()

  // The list has each with its device, and the device what was observed of it.
  await page.goto('/devices/hosts')
  await settled(page)
  const list = page.getByRole('table', { name: 'Hosts on the network' })
  await list.getByRole('row').filter({ hasText: tv }).getByRole('link', { name: 'television' }).click()
  await settled(page)
  const observed = page.getByRole('region', { name: 'As the network sees it' })
  await observed.getByText(tv).waitFor()
  await observed.getByText('192.168.10.', { exact: false }).first().waitFor()

  // Its page adds a filter rule for it alone.
  await observed.getByText(/^receives \d/).waitFor()
  const { id: television } = (await daemon.api('GET', '/devices')).find((device) => device.mac === tv)
  await page.goto(`/devices/${television}?tab=dns`)
  await settled(page)
  await page.getByRole('link', { name: 'Add a rule' }).click()
  await dialog.waitFor()
  await dialog.getByLabel('Pattern', { exact: true }).fill('video.example')
  await dialog.getByRole('button', { name: 'Create', exact: true }).click()
  await dialog.waitFor({ state: 'hidden' })
  const [rule] = await daemon.api('GET', '/dns/filter-rules')
  assert.deepEqual([rule.pattern, rule.scope.devices], ['video.example', [television]])
  await page.goto(`/devices/${television}?tab=dns`)
  await page
    .getByRole('region', { name: 'Filter rules for this device' })
    .getByText('video.example')
    .waitFor()
  assert.deepEqual(await violations(page), [])
  await daemon.api('DELETE', `/dns/filter-rules/${rule.id}`)

  // Without its record it is a host without a decision again, on a phone too; a click makes it a device at once.
  const id = (await daemon.api('GET', '/devices')).find((device) => device.mac === tv).id
  await daemon.api('DELETE', `/devices/${id}`)
  const phone = await open({ width: 360, height: 740, language: 'de', theme: 'dark' })
  await phone.page.getByRole('heading', { name: '1 Host ohne Entscheidung' }).waitFor()
  await phone.page.getByText(tv).first().waitFor()
  const over = () =>
    phone.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  assert.ok((await over()) <= 0, 'the overview is wider than the phone')
  await phone.shot('inbox-360-de')
  assert.deepEqual(await violations(phone.page), [])
  await phone.page.goto('/devices/hosts?only=strangers')
  await settled(phone.page)
  assert.ok((await over()) <= 0, 'the list is wider than the phone')
  await phone.shot('hosts-360-de')
  assert.deepEqual(await violations(phone.page), [])
  await phone.page.getByRole('button', { name: /^Als Gerät hinzufügen/ }).click()
  await until('the device', async () =>
    (await daemon.api('GET', '/devices')).some((device) => device.mac === tv && device.status === 'known'),
  )
  phone.watch.assertClean()
  await phone.close()
  watch.assertClean()
  await close()
}

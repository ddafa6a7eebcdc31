// A flow appears while it goes on, and ends; its row answers why it left as it did, also after the policy has changed. One
// click leads to the forms that block, route or allow its destination. Traffic is shown over time and by destination.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** Outside of the gateway; the packets of the laptop leave for it by a tunnel. It has no name. */
const ADDRESS = '203.0.113.99'

export default async function flows({ daemon, open }) {
  const laptop = (await daemon.api('GET', '/devices')).find(({ name }) => name === 'laptop')
  assert.ok(laptop, 'the laptop is a device')
  const { page, watch, shot, close } = await open({ path: `/activity/flows?device=${laptop.id}` })
  await settled(page)
  const rows = page.getByRole('table', { name: 'Flows' }).locator('tbody tr')
  const ping = rows.filter({ hasText: `${ADDRESS} icmp` }).first()
  await until('the flow', async () => {
    await daemon.on('laptop', 'ping', '-c', '1', '-W', '1', ADDRESS)
    return ping.isVisible()
  })
  assert.match(await ping.innerText(), /laptop[\s\S]*wg-a[\s\S]*vpn-only/)
  assert.match(await page.locator('h1').innerText(), /flows? go(es)? on/)

  // The row has the path, and the answer of then.
  await ping.click()
  const paths = page.getByRole('table', { name: 'Paths of the flow' })
  await paths.getByText('policy_egress').first().waitFor()
  await page.getByText(/By plan \d+, /).waitFor()
  await page.getByText('Leaves through a hop').first().waitFor()
  await shot('flows-detail')
  assert.deepEqual(await violations(page), [])
  const why = new URL(await ping.getByRole('link', { name: 'Why' }).getAttribute('href'), page.url())
  assert.equal(why.pathname, `/devices/${laptop.id}`)

  // Each deed opens its form with what is known.
  const link = (name) => page.getByRole('link', { name })
  await link(`Allow ${ADDRESS} directly`).click()
  await page.waitForURL(/\/policies\/exceptions\?/)
  await settled(page)
  assert.equal(await page.getByRole('textbox', { name: /targets|destinations/i }).inputValue(), ADDRESS)
  await page.goBack()
  await link(`Block ${ADDRESS}`).click()
  await page.waitForURL(/\/policies\/new\?/)
  await settled(page)
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), `block ${ADDRESS}`)
  await page.getByRole('button', { name: 'Save' }).click()
  const made = await until('the policy', async () =>
    (await daemon.api('GET', '/routing/policies')).find(({ name }) => name === `block ${ADDRESS}`),
  )
  assert.deepEqual([made.source_type, made.source_value, made.hops], ['destination', ADDRESS, []])
  await daemon.api('POST', '/routing/policies/apply')
  await until('a denied flow', async () => {
    await daemon.on('laptop', 'ping', '-c', '1', '-W', '1', ADDRESS)
    const denied = await daemon.api(
      'GET',
      `/flows?device=${laptop.id}&destination=${ADDRESS}&verdict=rejected`,
    )
    return denied.length > 0
  })

  // The flow of before still has the answer of before.
  await page.goto(why.pathname + why.search)
  await settled(page)
  await page.getByText(/By plan \d+, which was in force from/).waitFor()
  assert.match(await page.locator('h1').innerText(), /laptop → TUNNEL/)
  await page.getByRole('button', { name: 'Remove filter: As of' }).click()
  await until('the answer of now', async () => /BLOCKED/.test(await page.locator('h1').innerText()))

  // What has ended is read page by page, and filtered.
  await page.goto(`/activity/flows?state=ended&verdict=rejected`)
  await settled(page)
  assert.ok(await page.getByRole('button', { name: 'Frozen' }).isDisabled())
  await page.goto(`/activity/flows?device=${laptop.id}`)
  await page.getByRole('combobox', { name: 'Decision' }).selectOption('rejected')
  await until('denied flows only', async () => {
    const said = await rows.allInnerTexts()
    return said.length > 0 && said.every((each) => each.includes('rejected'))
  })
  assert.match(page.url(), /verdict=rejected/)

  for (const address of ['/activity/traffic', `/devices/${laptop.id}?tab=traffic`]) {
    await page.goto(address)
    await settled(page)
    await page.getByText(/in all: .*wg-a/).waitFor()
    assert.deepEqual(await violations(page), [])
  }
  await shot('flows-device-traffic')
  const talked = page.getByRole('table', { name: 'Who it talked to' })
  await talked.getByRole('row').nth(1).waitFor()

  const phone = await open({
    path: `/activity/flows?device=${laptop.id}`,
    theme: 'dark',
    width: 360,
    height: 740,
    language: 'de',
  })
  await settled(phone.page)
  await phone.page.locator('tbody tr').filter({ hasText: 'vpn-only' }).first().waitFor()
  const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth
  assert.equal(await phone.page.evaluate(over), 0, 'it is wider than the window')
  assert.deepEqual(await violations(phone.page), [])
  await phone.shot('flows-phone')
  phone.watch.assertClean()
  await phone.close()
  watch.assertClean()
  await close()
}

// A device asks for names that look generated: the finding appears with what it rests on, and leads to its queries. Kinds
// that are not observed say why. Collectors of records are set up, and their state is shown.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** Names below `invalid` do not exist (RFC 6761). */
const NAMES = Array.from({ length: 25 }, (_, number) => `q${number}w8z3k9x2r7t1.invalid`)

export default async function anomalies({ daemon, open }) {
  const { page, watch, shot, close } = await open({ path: '/activity/anomalies' })
  await settled(page)
  const stats = await daemon.api('GET', '/anomalies/stats')
  assert.match(await page.locator('h1').innerText(), /Nothing now, 0 in the last 24 hours/)
  const kinds = page.getByRole('table', { name: 'Kinds' })
  assert.equal(await kinds.locator('tbody tr').count(), stats.kinds.length)
  const unobserved = stats.kinds.find(({ observed }) => !observed)
  assert.ok(unobserved, 'a kind needs what this gateway does not have')
  await kinds.getByText(unobserved.reason).first().waitFor()

  const found = await until(
    'the finding',
    async () => {
      await daemon.on('laptop', 'dig', '@192.168.10.1', '+time=1', '+tries=1', ...NAMES)
      return (await daemon.api('GET', '/anomalies?kind=dga_like'))[0]
    },
    120_000,
  )
  const row = page
    .getByRole('table', { name: 'Anomalies' })
    .locator('tbody tr')
    .filter({ hasText: 'Generated names' })
  await row.first().waitFor()
  await row.first().click()
  await page.getByText('DNS queries', { exact: true }).first().waitFor()
  await page.getByText('a fixed threshold').first().waitFor()
  await shot('anomalies')
  assert.deepEqual(await violations(page), [])
  const queries = new URL(
    await page.getByRole('link', { name: 'DNS queries of this time' }).getAttribute('href'),
    page.url(),
  )
  assert.equal(queries.searchParams.get('client'), found.device_id)

  await page.getByRole('combobox', { name: 'State' }).selectOption('closed')
  await page.getByText('No anomaly was found.').waitFor()

  // A collector that is set up is in the table of states.
  await page.goto('/activity/collectors')
  await settled(page)
  await page.getByLabel('Send IPFIX').check()
  await page.getByLabel('Collector').first().fill('198.51.100.1')
  await page.getByRole('button', { name: 'Save' }).click()
  const states = page.getByRole('table', { name: 'What each has got' }).locator('tbody tr')
  await until('the state', async () => !/\boff\b/.test(await states.filter({ hasText: 'IPFIX' }).innerText()))
  const stored = await daemon.api('GET', '/flows/export')
  assert.deepEqual([stored.ipfix.enabled, stored.ipfix.host], [true, '198.51.100.1'])
  assert.equal(stored.otlp.enabled, false)
  await shot('collectors')
  assert.deepEqual(await violations(page), [])
  watch.assertClean()
  await close()
}

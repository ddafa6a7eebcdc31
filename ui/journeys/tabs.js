// Ten tabs of one browser: each shows its data, and a change that is made elsewhere reaches each without a reload. A browser
// opens six connections to a server, so tabs with a stream each would leave none for the seventh.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const TABS = 10
const ADDRESSES = ['/devices', '/', '/policies', '/dns', '/network']

export default async function tabs({ daemon, open }) {
  const first = await open({ path: ADDRESSES[0] })
  const pages = [first.page]
  while (pages.length < TABS) {
    const page = await first.page.context().newPage()
    page.setDefaultTimeout(30_000)
    await page.goto(ADDRESSES[pages.length % ADDRESSES.length])
    await settled(page)
    pages.push(page)
  }
  for (const [index, page] of pages.entries())
    await until(`the verdict in tab ${index + 1}`, async () =>
      /OK|BLOCKED/.test(await page.locator('.top .chip').innerText()),
    )
  // The list of alerts comes by the stream alone: it is known in each tab.
  for (const [index, page] of pages.entries())
    await until(
      `the alerts in tab ${index + 1}`,
      async () => !/not known/.test((await page.locator('.top a.icobtn').getAttribute('aria-label')) ?? ''),
    )
  const shown = pages.filter((_, index) => ADDRESSES[index % ADDRESSES.length] === '/devices')
  await daemon.api('POST', '/devices', { name: 'a-late-guest', mac: '02:00:00:00:0a:01' })
  for (const page of shown) await page.locator('main').getByText('a-late-guest').first().waitFor()
  // Each of them still gets answers of its own.
  const ages = await Promise.all(
    pages.map((page) =>
      page.waitForResponse((response) => new URL(response.url()).pathname === '/api/v1/status'),
    ),
  )
  assert.equal(ages.length, TABS)
  first.watch.assertClean()
  await first.close()
}

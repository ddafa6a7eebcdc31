// A new page says where one is: its title has the page and the state, and its heading has the focus. A filter moves no focus.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { Keys } from './lib/keys.js'
import { settled } from './lib/pages.js'

const ENTRIES = [
  ['d', '/devices', /^Devices/],
  ['p', '/policies', /^Order/],
  ['t', '/paths', /^Tunnels/],
]

export default async function headings({ open }) {
  const { page, watch, close } = await open()
  const keys = new Keys(page)
  await settled(page)
  await until('a title with the state', async () =>
    /^Overview · (OK|BLOCKED) · Gateway$/.test(await page.title()),
  )
  const shortcuts = await page
    .locator('.nav a')
    .evaluateAll((links) => links.map((link) => new URL(link.href).pathname))
  for (const [, address] of ENTRIES) assert.ok(shortcuts.includes(address), `${address} is an entry`)
  for (const [, address, title] of ENTRIES) {
    await page.locator(`.side .nav a[href="${address}"]`).focus()
    await keys.press('Enter')
    await page.waitForURL((url) => url.pathname === address)
    await headingHasFocus(page)
    assert.match(await page.title(), new RegExp(`${title.source}.* · (OK|BLOCKED) · Gateway$`))
  }
  // By a shortcut, from the heading.
  await keys.press('g')
  await keys.press('o')
  await page.waitForURL((url) => url.pathname === '/')
  await headingHasFocus(page)
  // A detail is titled by its name.
  await page.goto('/devices')
  await settled(page)
  const device = page.locator('main tbody a').first()
  const name = (await device.innerText()).trim()
  await device.focus()
  await keys.press('Enter')
  await page.waitForURL(/\/devices\/.+/)
  await headingHasFocus(page)
  await until('the name in the title', async () => (await page.title()).startsWith(`${name} · `))
  // A filter changes the address of the same page only.
  await page.goto('/dns')
  await settled(page)
  await keys.press('/')
  await keys.type('tracker')
  await keys.press('Enter')
  await page.waitForURL(/domain=tracker/)
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'INPUT')
  watch.assertClean()
  await close()
}

function headingHasFocus(page) {
  return page.waitForFunction(() => document.activeElement?.matches('main h1'))
}

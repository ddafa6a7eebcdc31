// Every page without a mouse: Tab reaches each control, each has a name, is in view and shows the focus. Then one task in
// the query log by keys alone: filter, open a query, allow its name, undo.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { Keys } from './lib/keys.js'
import { addresses, settled } from './lib/pages.js'

export default async function keyboard({ open }) {
  const { page, watch, close } = await open()
  const keys = new Keys(page)
  const found = []
  for (const address of (await addresses(page)).tabs) {
    await page.goto(address)
    await settled(page)
    found.push(...(await keys.walk()).map((each) => `${address}: ${each}`))
  }
  assert.equal(found.length, 0, found.join('\n'))
  await allowByKeys(page, keys)
  watch.assertClean()
  await close()
}

async function allowByKeys(page, keys) {
  await page.goto('/dns')
  await settled(page)
  await page.locator('.log tbody tr').first().waitFor()
  await keys.press('/')
  await keys.type('tracker')
  await keys.press('Enter')
  await page.waitForURL(/domain=tracker/)
  await until('the filtered list', async () =>
    (await page.locator('.log .q').allInnerTexts()).every((name) => name.includes('tracker')),
  )
  await keys.reach(/^TR/)
  await keys.press('Enter')
  await page.waitForURL(/open=/)
  await keys.reach(/^BUTTON\s+(Allow|Block) this name/)
  await keys.press('Enter')
  await page.locator('.toast').waitFor()
  await keys.reach(/^BUTTON\s+Undo/, 'Shift+Tab')
  await keys.press('Enter')
  await page.locator('.toast').waitFor({ state: 'detached' })
}

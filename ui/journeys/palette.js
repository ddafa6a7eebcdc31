// The palette: an action by its words, one entry for a setting, which opens that setting, and all of it on a phone.

import assert from 'node:assert/strict'
import { settled } from './lib/pages.js'

const SETTING = 'dns.rate_limit_per_client'

export default async function palette({ open }) {
  const wide = await open()
  await settled(wide.page)
  await wide.page.keyboard.press('Control+k')
  const find = (page) => page.getByRole('combobox', { name: 'Go to or change anything' })
  await find(wide.page).fill(SETTING)
  const options = wide.page.locator('dialog[open] [role="option"]')
  await options.first().waitFor()
  assert.deepEqual(
    (await options.allInnerTexts()).map((each) => each.split('\n')[0].trim()),
    [SETTING],
  )
  await wide.page.keyboard.press('Enter')
  await wide.page.waitForURL(/\/system\/settings\?/)
  await wide.page.locator('main').getByText(SETTING, { exact: true }).first().waitFor()
  wide.watch.assertClean()
  await wide.close()

  const phone = await open({ width: 360, height: 740 })
  await settled(phone.page)
  await phone.page.getByRole('button', { name: 'Go to or change anything' }).click()
  await find(phone.page).fill('pause block')
  await phone.page.getByRole('option', { name: /Pause blocking/ }).click()
  await phone.page.waitForURL(/blocking_paused_until/)
  await phone.page.locator('main').getByText('dns.blocking_paused_until', { exact: true }).first().waitFor()
  await phone.page.getByRole('button', { name: 'Go to or change anything' }).click()
  await find(phone.page).fill('add device')
  await phone.page.getByRole('option', { name: /Add device/ }).click()
  await phone.page.waitForURL(/\/devices\/new/)
  phone.watch.assertClean()
  await phone.close()
}

// Names that devices and queries bring are text, whatever they hold.

import assert from 'node:assert/strict'
import { settled } from './lib/pages.js'

const HOSTILE = '<img src=x onerror=alert(1)>"\'`{{7*7}}'

export default async function names({ daemon, open }) {
  const device = await daemon.api('POST', '/devices', {
    name: HOSTILE.slice(0, 60),
    mac: '02:aa:00:00:00:99',
  })
  await daemon.on(
    'laptop',
    'dig',
    '+tries=1',
    '+time=2',
    '@192.168.10.1',
    '<script>alert(1)</script>.example',
  )
  const { page, watch, close } = await open({ path: '/devices' })
  page.on('dialog', (dialog) => assert.fail(`a dialog: ${dialog.message()}`))
  await settled(page)
  await page.getByText(HOSTILE.slice(0, 60)).first().waitFor()
  for (const address of [`/devices/${device.id}`, '/dns', '/']) {
    await page.goto(address)
    await settled(page)
    assert.equal(await page.locator('main img, main script').count(), 0)
  }
  watch.assertClean()
  await close()
  await daemon.api('DELETE', `/devices/${device.id}`)
}

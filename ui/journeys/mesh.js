// The coordinator of the mesh is off, and its page says so. Once it is on, a key is created: the command and the QR code are
// shown once, and hold the key.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function mesh({ daemon, open }) {
  const { page, watch, shot, close } = await open({ path: '/network/mesh' })
  await settled(page)
  await page.getByRole('heading', { name: 'None: the coordinator of the mesh is off.' }).waitFor()
  assert.ok(await page.getByRole('button', { name: 'Add a peer' }).isDisabled())
  await page.getByRole('link', { name: /mesh\.coordinator/ }).waitFor()
  assert.deepEqual(await violations(page), [])

  await daemon.api('PUT', '/settings/mesh.coordinator.host', { value: 'gateway.example' })
  await daemon.api('PUT', '/settings/mesh.coordinator.enabled', { value: true })
  await page.getByText('serves its nodes').waitFor()
  await page.getByRole('button', { name: 'Add a peer' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('More than one peer').check()
  await dialog.getByLabel('Number of peers').fill('3')
  await dialog.getByLabel('Tags').fill('tag:phone')
  await dialog.getByRole('button', { name: 'Create a key' }).click()
  const code = dialog.getByRole('img', { name: 'QR code of the key' })
  await code.waitFor()
  const isDrawn = () => code.evaluate((image) => image.complete && image.naturalWidth > 0)
  await until('the QR code', isDrawn)
  const command = await dialog.locator('code').innerText()
  assert.match(command, /--login-server[ =]https:\/\/gateway\.example:8443/)
  assert.match(command, /gwmesh-[0-9a-f]+-\S+/)
  await shot('mesh-key')
  assert.deepEqual(await violations(page), [])
  await dialog.getByRole('button', { name: 'Close' }).last().click()
  assert.equal(await page.getByText('gwmesh-').count(), 0, 'the key is shown once')
  await page.getByText('No peer has joined').waitFor()
  await shot('mesh')
  assert.deepEqual(await violations(page), [])
  watch.assertClean()
  await close()
}

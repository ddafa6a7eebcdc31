// Another gateway is approved by the words of its key, gets what is exchanged with it, and is revoked. Wrong words approve
// nothing. A role names what it may do.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { generateKeyPairSync } from 'node:crypto'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** A public key as gateways exchange it. */
function publicKey() {
  const { publicKey: key } = generateKeyPairSync('ed25519')
  return Buffer.from(key.export({ format: 'jwk' }).x, 'base64url').toString('base64')
}

export default async function federation({ daemon, open }) {
  const made = await daemon.api('POST', '/nodes', {
    name: 'branch',
    url: 'https://203.0.113.7:8443/',
    public_key: publicKey(),
  })
  const stored = () => daemon.api('GET', `/nodes/${made.id}`)
  const { page, watch, shot, close } = await open({ path: '/system/federation' })
  await settled(page)
  await page.getByRole('table', { name: 'Gateways' }).getByText('waiting for approval').waitFor()
  await shot('federation')
  assert.deepEqual(await violations(page), [])

  // A role of one's own.
  await page.getByRole('link', { name: 'Roles' }).click()
  await page.getByRole('button', { name: 'Add' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('follower')
  const mayFetch = dialog.getByRole('group', { name: /May fetch/ })
  await mayFetch.getByLabel('Policies').check()
  await dialog.getByRole('button', { name: 'Create' }).click()
  const row = page.getByRole('row', { name: /follower/ })
  await row.getByText('Policies').waitFor()
  await shot('roles')
  assert.deepEqual(await violations(page), [])

  await page.goto('/system/federation')
  await page.getByRole('link', { name: 'branch' }).click()
  const words = page.getByLabel('Words as its administrator reads them')
  const approve = page.getByRole('button', { name: 'Approve' })
  await words.fill('wrong words of another key')
  await approve.click()
  await page.getByRole('alert').first().waitFor()
  assert.equal((await stored()).status, 'pending')
  await words.fill(made.fingerprint_words)
  await approve.click()
  await page.getByRole('button', { name: 'Revoke' }).waitFor()
  assert.equal((await stored()).status, 'approved')

  await page.getByLabel('Direction').selectOption('push')
  await page.getByLabel('Role').selectOption('follower')
  await page.getByLabel('Interfaces').fill('lan0 = br-lan')
  await page
    .getByRole('group', { name: /Kinds that are exchanged/ })
    .getByLabel('Policies')
    .check()
  await page.getByRole('button', { name: 'Save' }).click()
  const node = await until('the saved node', async () => {
    const read = await stored()
    return read.role === 'follower' ? read : null
  })
  assert.deepEqual(
    [node.role, node.sync_policy, node.sync_resources, node.interface_map],
    ['follower', 'push', 'routing', { lan0: 'br-lan' }],
  )
  await shot('node')
  assert.deepEqual(await violations(page), [])

  await page.getByRole('button', { name: 'Revoke' }).click()
  const question = page.getByRole('dialog')
  await question.getByRole('textbox').fill('branch')
  await question.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('its key was revoked').waitFor()
  assert.equal((await stored()).status, 'revoked')
  watch.assertClean()
  await close()
}

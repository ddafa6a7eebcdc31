// A preset becomes a policy: chosen, filled in, previewed, created, applied and undone, discarded. Another one becomes a
// profile, which changes nothing by itself; an own one is made, used and deleted.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function presets({ daemon, open }) {
  const { page, watch, close } = await open({ path: '/policies/presets' })
  await settled(page)
  const button = (name) => page.getByRole('button', { name, exact: true })
  const dialog = page.getByRole('dialog')
  const dock = page.locator('.dock')
  const status = () => daemon.api('GET', '/status')
  const stored = async (name) =>
    (await daemon.api('GET', '/routing/policies')).find((policy) => policy.name === name)
  const enforced = async (name) =>
    (await daemon.api('GET', '/enforce')).policies.some((policy) => policy.name === name)
  const use = async (name) => {
    await page.goto('/policies/presets')
    await settled(page)
    await page
      .getByRole('row')
      .filter({ has: page.getByRole('link', { name, exact: true }) })
      .getByRole('link', { name: 'Use', exact: true })
      .click()
    await page.getByRole('heading', { name: 'Use it', exact: true }).waitFor()
    await settled(page)
  }
  assert.equal((await status()).pending_changes, false)

  // What the preset leaves open is asked for, and what would come of it is said before.
  await use('iot')
  assert.equal(await page.getByLabel('Priority', { exact: true }).inputValue(), '500')
  await page.getByLabel('family', { exact: true }).check()
  await button('Add hop').click()
  await page.getByLabel('Target of hop 1').selectOption('wg-a')
  await page.getByText('fail-closed').first().waitFor()
  assert.equal(await stored('iot'), undefined)
  await button('Create policy').click()
  await dialog.getByText('family').waitFor()
  await dialog.getByText('wg-a').waitFor()
  await dialog.getByText('The policy is stored and not active.').waitFor()
  await dialog.getByRole('button', { name: 'Create policy' }).click()
  await page.waitForURL(/\/policies\/[0-9a-f-]{36}$/)
  assert.equal((await stored('iot')).fail_policy, 'fail-closed')
  assert.equal(await enforced('iot'), false)

  // Applied for a while, and undone.
  await dock.getByRole('button', { name: 'Apply', exact: true }).click()
  await page.getByText(/undoes itself in/).waitFor()
  assert.equal(await enforced('iot'), true)
  await button('Undo now').click()
  await until('the end of the policy', async () => !(await enforced('iot')))
  await page.getByText(/undoes itself in/).waitFor({ state: 'hidden' })

  // What is stored goes, too, by the discard, which lists it before.
  assert.notEqual(await stored('iot'), undefined)
  await dock.getByRole('button', { name: 'Discard', exact: true }).click()
  await dialog.getByText('iot').first().waitFor()
  await dialog.getByRole('button', { name: 'Discard' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await until('nothing to wait', async () => !(await status()).pending_changes)
  assert.equal(await stored('iot'), undefined)

  // A profile is made, and nothing waits for an apply.
  await use('work')
  await page.getByLabel('Name', { exact: true }).first().fill('office')
  await button('Add hop').click()
  await button('Create profile').click()
  await dialog.getByRole('button', { name: 'Create profile' }).click()
  await page.waitForURL(/\/policies\/profiles\/[0-9a-f-]{36}$/)
  const name = page.locator('main').getByLabel('Name', { exact: true })
  await until('the profile', async () => (await name.count()) === 1 && (await name.inputValue()) === 'office')
  assert.equal((await status()).pending_changes, false)

  // An own preset is made, used and deleted; what came of it stays.
  await page.goto('/policies/presets/new')
  await settled(page)
  await name.fill('mine')
  await button('Create').click()
  await page.waitForURL(/\/policies\/presets\/[0-9a-f-]{36}$/)
  await use('mine')
  await name.first().fill('of-mine')
  await page.getByLabel('family', { exact: true }).check()
  await button('Create policy').click()
  await dialog.getByRole('button', { name: 'Create policy' }).click()
  await page.waitForURL(/\/policies\/[0-9a-f-]{36}$/)
  await use('mine')
  await button('Delete').click()
  await dialog.getByLabel('Type mine to confirm').fill('mine')
  await dialog.getByRole('button', { name: 'Delete preset' }).click()
  await page.waitForURL(/\/policies\/presets$/)
  await until('the end of the preset', async () =>
    (await daemon.api('GET', '/presets')).every((preset) => preset.name !== 'mine'),
  )
  assert.notEqual(await stored('of-mine'), undefined)

  // One that would let devices out directly is not applied by the bar: the review asks for its name.
  await use('gaming')
  await page.getByLabel('family', { exact: true }).check()
  await button('Add hop').click()
  await button('Create policy').click()
  await dialog.getByRole('button', { name: 'Create policy' }).click()
  await page.waitForURL(/\/policies\/[0-9a-f-]{36}$/)
  await dock.getByRole('button', { name: 'Apply', exact: true }).click()
  await dock.getByLabel(/^Type .* to confirm$/).waitFor()
  assert.ok(await button('Apply with snapshot').isDisabled())
  assert.equal(await enforced('gaming'), false)

  watch.assertClean()
  await close()
}

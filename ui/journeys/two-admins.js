// Two administrators change one policy: the second one sees both changes and merges them; nothing is lost.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function twoAdmins({ daemon, open }) {
  const [policy] = await daemon.api('GET', '/routing/policies')
  const one = await open({ path: `/policies/${policy.id}` })
  const two = await open({ path: `/policies/${policy.id}` })
  await settled(one.page)
  await settled(two.page)
  await change(one.page, 'Name', `${policy.name}-one`)
  const stored = () => daemon.api('GET', `/routing/policies/${policy.id}`)
  await until('the first change', async () => (await stored()).name === `${policy.name}-one`)
  await change(two.page, 'Description', 'by the second')
  await two.page.getByRole('dialog').getByRole('button', { name: 'Save both' }).click()
  await two.page.getByRole('dialog').waitFor({ state: 'hidden' })
  await until('the second change', async () => (await stored()).description === 'by the second')
  assert.equal((await stored()).name, `${policy.name}-one`)
  for (const each of [one, two]) {
    each.watch.assertClean()
    await each.close()
  }
}

async function change(page, field, value) {
  await page.getByLabel(field, { exact: true }).fill(value)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
}

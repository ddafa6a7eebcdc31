// Two administrators change one policy: the second one sees both changes and merges them; nothing is lost. A form that was
// not touched shows the new version by itself.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function twoAdmins({ daemon, open }) {
  const [policy] = await daemon.api('GET', '/routing/policies')
  const stored = () => daemon.api('GET', `/routing/policies/${policy.id}`)
  const one = await open({ path: `/policies/${policy.id}` })
  const two = await open({ path: `/policies/${policy.id}` })
  await settled(one.page)
  await settled(two.page)

  // The second one has begun when the first one saves.
  await field(two.page, 'Description').fill('by the second')
  await field(one.page, 'Name').fill(`${policy.name}-one`)
  await save(one.page)
  await until('the first change', async () => (await stored()).name === `${policy.name}-one`)
  await save(two.page)
  await two.page.getByRole('dialog').getByRole('button', { name: 'Save both' }).click()
  await two.page.getByRole('dialog').waitFor({ state: 'hidden' })
  await until('the second change', async () => (await stored()).description === 'by the second')
  assert.equal((await stored()).name, `${policy.name}-one`)

  await until(
    'the second change in the form of the first',
    async () => (await field(one.page, 'Description').inputValue()) === 'by the second',
  )
  for (const each of [one, two]) {
    each.watch.assertClean()
    await each.close()
  }
}

function field(page, name) {
  return page.getByLabel(name, { exact: true })
}

async function save(page) {
  await page.getByRole('button', { name: 'Save', exact: true }).click()
}

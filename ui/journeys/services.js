// The page of a device keeps it from a service and turns on safe search, by filter rules for this device alone.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function services({ daemon, open }) {
  const laptop = (await daemon.api('GET', '/devices')).find(({ name }) => name === 'laptop')
  assert.ok(laptop, 'the laptop is a device')
  const rules = async () =>
    (await daemon.api('GET', '/dns/filter-rules')).filter(({ scope }) => scope.devices.includes(laptop.id))
  const before = (await rules()).length
  const statusOf = async (name) => {
    await daemon.on('laptop', 'dig', '+tries=1', '+time=2', '@192.168.10.1', name)
    return (await daemon.api('GET', `/dns/log?domain=${name}&limit=1`))[0]?.status
  }
  const isNotBlocked = async (name) => !['blocked', undefined].includes(await statusOf(name))
  await until('a query that is not blocked', () => isNotBlocked('a.tiktok.com'))

  const { page, watch, close } = await open()
  await page.goto(`/devices/${laptop.id}?tab=dns`)
  await settled(page)
  const tiktok = page.getByRole('checkbox', { name: 'TikTok' })
  await tiktok.click()
  await until('the rule', async () => (await rules()).length === before + 1)
  await until('a blocked query', async () => (await statusOf('b.tiktok.com')) === 'blocked')
  await page.getByRole('checkbox', { name: 'TikTok', checked: true }).waitFor()

  await page.getByRole('checkbox', { name: 'Safe search' }).click()
  await until('the rules of safe search', async () =>
    (await rules()).some(({ answer }) => answer === 'forcesafesearch.google.com'),
  )
  await until('a rewritten answer', async () => (await statusOf('www.google.de')) === 'rewritten')

  await page.getByRole('checkbox', { name: 'Safe search', checked: true }).click()
  await tiktok.click()
  await until('no rule is left', async () => (await rules()).length === before)
  await page.getByRole('checkbox', { name: 'TikTok', checked: false }).waitFor()
  await until('a query that is not blocked', () => isNotBlocked('c.tiktok.com'))
  watch.assertClean()
  await close()
}

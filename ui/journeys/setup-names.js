// The step of the setup that gives the LAN its name resolution, offers a filter list, and decides on hosts that are no device.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const NAME = 'www.example'

export default async function setupNames({ daemon, open }) {
  const setting = async (key) => (await daemon.api('GET', `/settings/${key}`)).value
  const asked = () => daemon.on('laptop', 'dig', '+short', '+tries=1', '+time=2', '@192.168.10.1', NAME)
  const reaches = () => daemon.on('laptop', 'curl', '-s', '-m', '2', 'http://198.18.0.1/ip')
  const [server] = await setting('dns.upstream_servers')
  const answer = await until('an answer', asked)
  // A gateway as it is at first: no upstream, so no name of the internet is resolved.
  await daemon.api('PUT', '/settings/dns.upstream_servers', { value: [] })
  await daemon.api('POST', '/dns/cache/flush')
  await until('no answer', async () => (await asked()) !== answer)

  const { page, watch, shot, close } = await open({ wizard: true })
  const begin = async () => {
    await page.evaluate(() => {
      localStorage.setItem('gateway.first-run', 'open')
      localStorage.setItem('gateway.setup', JSON.stringify({ step: 'names' }))
    })
    await page.reload()
    await page.getByRole('heading', { name: 'Names and hosts', level: 1 }).waitFor()
    await settled(page)
  }
  const choose = (name) => page.getByRole('radio', { name }).check()
  const next = async () => {
    await page.locator('[data-next]').click()
    await page.getByRole('heading', { name: 'Bring a path' }).waitFor()
  }

  // An encrypted resolver and a list are offered, and nothing is set before it is asked for.
  await begin()
  assert.ok(await page.getByRole('radio', { name: /^Quad9, encrypted/ }).isChecked())
  assert.ok(await page.getByLabel(/^Block ads and trackers by a list/).isChecked())
  assert.ok(await page.getByRole('radio', { name: /^Direct/ }).isChecked())
  assert.deepEqual(await setting('dns.upstream_servers'), [])
  assert.deepEqual(await daemon.api('GET', '/dns/blocklist'), [])
  await shot('wizard-names')
  assert.deepEqual(await violations(page), [])

  // Its own resolver and a list: names are resolved.
  await choose(/^Other addresses/)
  assert.ok(await page.locator('[data-next]').isDisabled())
  await page.getByLabel('Addresses', { exact: true }).fill(server)
  await next()
  assert.deepEqual(await setting('dns.upstream_servers'), [server])
  assert.equal(await setting('dns.upstream_mode'), 'plain')
  const lists = async () => (await daemon.api('GET', '/dns/blocklist')).map((list) => list.name)
  assert.deepEqual(await lists(), ['HaGeZi Light'])
  await until('the answer again', async () => (await asked()) === answer)

  // Again: it keeps what is set and offers no second list. Unknown hosts are blocked: the laptop is held back, as the page says.
  await until('the laptop to leave', reaches)
  await begin()
  assert.ok(await page.getByRole('radio', { name: `Keep what is set: ${server}` }).isChecked())
  assert.ok(!(await page.getByLabel(/^Block ads and trackers by a list/).isChecked()))
  await page.getByText('1 list is subscribed already.').waitFor()
  await choose(/^Blocked/)
  await next()
  assert.equal(await setting('network.unknown_hosts'), 'blocked')
  assert.deepEqual(await setting('dns.upstream_servers'), [server])
  assert.deepEqual(await lists(), ['HaGeZi Light'])
  await until('the laptop to be held back', async () => (await reaches()) === '')
  await until('no names for it', async () => (await asked()) !== answer)
  // The same holds in quarantine.
  await daemon.api('PUT', '/settings/network.unknown_hosts', { value: 'direct' })
  await until('names again', async () => (await asked()) === answer)
  await daemon.api('PUT', '/settings/network.unknown_hosts', { value: 'quarantine' })
  await until('no names in quarantine', async () => (await asked()) !== answer)

  // An encrypted resolver, with the name on its certificate; unknown hosts leave again.
  await begin()
  await choose(/^Quad9, encrypted/)
  await choose(/^Direct/)
  await next()
  assert.equal(await setting('dns.upstream_mode'), 'dot')
  assert.ok((await setting('dns.upstream_servers')).includes('9.9.9.9'))
  assert.equal((await setting('dns.upstream_tls_names'))['9.9.9.9'], 'dns.quad9.net')
  await until('the laptop to leave again', reaches)

  // By a policy: hosts leave as before, and the end of the setup leads to the form of a policy for all traffic.
  await begin()
  await choose(/^By a policy/)
  await next()
  assert.equal(await setting('network.unknown_hosts'), 'direct')
  await page.evaluate(() => {
    const progress = JSON.parse(localStorage.getItem('gateway.setup'))
    localStorage.setItem('gateway.setup', JSON.stringify({ ...progress, step: 'names' }))
  })
  await page.reload()
  assert.ok(await page.getByRole('radio', { name: /^By a policy/ }).isChecked())
  await page.evaluate(() => {
    const progress = JSON.parse(localStorage.getItem('gateway.setup'))
    localStorage.setItem('gateway.setup', JSON.stringify({ ...progress, step: 'save' }))
  })
  await page.reload()
  await page.getByRole('button', { name: 'Finish, and write the policy' }).click()
  await page.waitForURL('**/policies/new?source=all')
  await settled(page)
  assert.equal(await page.getByLabel('Applies to').inputValue(), 'all')

  // The page of hosts offers the same, in German, too.
  await page.goto('/devices/hosts')
  await settled(page)
  const option = (name) => page.getByRole('button', { name, exact: true })
  assert.equal(await option('Direct').getAttribute('aria-pressed'), 'true')
  await option('Blocked').click()
  await until('the setting', async () => (await setting('network.unknown_hosts')) === 'blocked')
  await option('By a policy').click()
  await until('the setting again', async () => (await setting('network.unknown_hosts')) === 'direct')
  await page.getByRole('link', { name: 'Write a policy for all traffic' }).click()
  await page.waitForURL('**/policies/new?source=all')
  assert.equal(await page.getByLabel('Applies to').inputValue(), 'all')
  const german = await open({ language: 'de' })
  await german.page.goto('/devices/hosts')
  await settled(german.page)
  await german.page.getByRole('button', { name: 'Nach Richtlinie', exact: true }).click()
  await german.page.getByRole('link', { name: 'Richtlinie für allen Verkehr schreiben' }).waitFor()
  assert.deepEqual(await violations(german.page), [])
  german.watch.assertClean()
  await german.close()

  // On a phone nothing is wider than the window.
  await page.setViewportSize({ width: 360, height: 740 })
  await begin()
  const over = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  )
  assert.ok(over <= 0, `${over} px wider than the phone`)
  await shot('wizard-names-360')
  assert.deepEqual(await violations(page), [])
  watch.assertClean()
  await close()
}

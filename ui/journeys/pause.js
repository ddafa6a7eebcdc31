// The overview pauses blocking for a while and resumes it, and has the most frequent clients and names. The query log leaves
// out what a filter excludes. The dashboard can be installed.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function pause({ daemon, open }) {
  await daemon.on('laptop', 'dig', '+tries=1', '+time=2', '@192.168.10.1', 'top.pause.example')
  await until('a counted name', async () =>
    (await daemon.api('GET', '/dns/clients')).some(({ top }) =>
      top.some(({ name }) => name.startsWith('top.pause.example')),
    ),
  )
  const { page, watch, close } = await open()
  await settled(page)
  const paused = async () => (await daemon.api('GET', '/dns/status')).blocking.paused_until
  assert.equal(await paused(), null)
  await page.getByRole('button', { name: 'Pause blocking for 30 min' }).click()
  await page.getByText(/Blocking is paused until .*: no name is blocked\./).waitFor()
  const left = Date.parse(await until('a pause', paused)) - Date.now()
  assert.ok(left > 28 * 60_000 && left <= 30 * 60_000, `${left} ms are left`)
  await page.locator('.pause', { hasText: /29m \d+s left/ }).waitFor()
  await page.getByRole('button', { name: 'Resume blocking' }).click()
  await page.getByRole('button', { name: 'Pause blocking for 30 min' }).waitFor()
  await until('no pause', async () => (await paused()) === null)

  await page.getByRole('list', { name: 'Top names' }).getByRole('link').first().waitFor()
  await page.getByRole('list', { name: 'Top clients' }).getByRole('link').first().waitFor()

  await page.goto('/dns')
  await settled(page)
  const rows = (name) => page.locator('.log tbody tr', { hasText: name })
  await rows('top.pause.example').first().waitFor()
  const field = page.getByRole('searchbox').first()
  await field.fill('!pause.example')
  await field.press('Enter')
  await rows('www.example').first().waitFor()
  await page.waitForURL(/not_domain=pause\.example/)
  await until('the name is left out', async () => (await rows('top.pause.example').count()) === 0)

  const manifest = await page.evaluate(async () => {
    const { href } = document.querySelector('link[rel=manifest]')
    const answer = await fetch(href)
    return { type: answer.headers.get('content-type'), content: await answer.json() }
  })
  assert.match(manifest.type, /^application\/manifest\+json/)
  const icon = await page.request.get(manifest.content.icons[0].src)
  assert.match(icon.headers()['content-type'], /^image\/svg\+xml/)
  watch.assertClean()
  await close()
}

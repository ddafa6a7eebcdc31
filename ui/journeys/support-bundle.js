// A support bundle is built and downloaded on the page About: its table has the parts of the archive, the archive has no name
// of a device, and the next bundle takes the place of the first.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function supportBundle({ daemon, open }) {
  const { page, watch, shot, close } = await open({ path: '/system/about' })
  await settled(page)
  const section = page.getByRole('region', { name: 'Support bundle' })
  const link = section.getByRole('link', { name: 'Download the bundle' })
  assert.equal(await link.count(), 0, 'there is no bundle yet')
  await section.getByRole('button', { name: 'Build a bundle' }).click()
  await section.getByText('Ready for 30 minutes').waitFor()
  const rows = section.getByRole('table', { name: 'Parts of the bundle' }).locator('tbody tr')
  const parts = (await rows.allInnerTexts()).map((row) => row.split(/\s/)[0])
  await shot('system-support-bundle')
  assert.deepEqual(await violations(page), [])

  const href = await link.getAttribute('href')
  const downloading = page.waitForEvent('download')
  await link.click()
  const download = await downloading
  assert.match(download.suggestedFilename(), /^gateway-bundle-.*\.tar\.gz$/)
  const files = filesOf(gunzipSync(readFileSync(await download.path())))
  const manifest = JSON.parse(files.get('manifest.json'))
  assert.deepEqual(
    parts,
    manifest.parts.map(({ file }) => file),
  )
  for (const { file, size, error } of manifest.parts) {
    assert.equal(error, null, `${file}: ${error}`)
    assert.equal(files.get(file)?.length, size, file)
  }
  // The page shows names of devices, the archive does not.
  const [device] = (await daemon.api('GET', '/devices')).filter(({ name }) => name === 'laptop')
  assert.ok(device, 'the laptop is a device')
  const configuration = files.get('configuration.json').toString()
  assert.ok(configuration.includes(device.id), 'the configuration has the device')
  assert.doesNotMatch(configuration, /laptop|vpn-only/)

  await until('both in the audit log', async () => {
    const actions = (await daemon.api('GET', '/audit?limit=50')).map(({ action }) => action)
    return ['create_support_bundle', 'read_support_bundle'].every((action) => actions.includes(action))
  })

  await section.getByRole('button', { name: 'Build another' }).click()
  await until('another bundle', async () => {
    const next = (await link.count()) === 1 ? await link.getAttribute('href') : null
    return next !== null && next !== href
  })
  assert.equal((await page.request.get(href)).status(), 404, 'the first is no longer kept')

  const phone = await open({ path: '/system/about', theme: 'dark', width: 360, height: 740, language: 'de' })
  await settled(phone.page)
  const german = phone.page.getByRole('region', { name: 'Diagnosepaket' })
  await german.getByRole('button', { name: 'Paket erstellen' }).click()
  await german.getByRole('link', { name: 'Paket herunterladen' }).waitFor()
  const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth
  assert.equal(await phone.page.evaluate(over), 0, 'it is wider than the window')
  assert.deepEqual(await violations(phone.page), [])
  await phone.shot('system-support-bundle-phone')
  phone.watch.assertClean()
  await phone.close()
  watch.assertClean()
  await close()
}

const BLOCK = 512

/** The files of a tar archive by their names. */
function filesOf(archive) {
  const files = new Map()
  for (let at = 0; archive[at] !== 0 && at < archive.length;) {
    const name = archive.toString('utf8', at, at + 100).replace(/\0.*$/, '')
    const size = Number.parseInt(archive.toString('latin1', at + 124, at + 136), 8)
    const start = at + BLOCK
    files.set(name, archive.subarray(start, start + size))
    at = start + Math.ceil(size / BLOCK) * BLOCK
  }
  return files
}

// Live regions are written when something happened, and not by the clock: over a number of reads in which nothing changes, a
// screen reader has nothing to say. A verdict that changes is said once.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const PAGES = ['/', '/devices', '/policies', '/dns', '/network']
/** Answers of the daemon, each three seconds apart, through which a page is watched. */
const READS = 3

export default async function idle({ daemon, open }) {
  const { page, watch, close } = await open()
  const found = []
  for (const address of PAGES) {
    await page.goto(address)
    await settled(page)
    await until('the verdict to be said', () => said(page))
    const verdicts = follow(page)
    await record(page)
    const age = () => page.locator('.top .chip time').innerText()
    const before = await age()
    for (let count = 0; count < READS; count += 1)
      await page.waitForResponse((response) => new URL(response.url()).pathname === '/api/v1/status')
    await until('an age that went on', async () => (await age()) !== before)
    const written = await changes(page)
    // A verdict that changed meanwhile is said.
    const frame = written.filter((change) => change.startsWith('sr: '))
    if (frame.length > verdicts.changes()) found.push(...frame.map((change) => `${address}: ${change}`))
    found.push(
      ...written.filter((change) => !frame.includes(change)).map((change) => `${address}: ${change}`),
    )
    verdicts.end()
  }
  assert.deepEqual(found, [], 'live regions were written while nothing changed')
  await page.goto('/')
  await settled(page)
  const before = await until('the verdict to be said', () => said(page))
  const tunnel = (await daemon.api('GET', '/tunnels')).find(({ name }) => name === 'wg-a')
  await record(page)
  await daemon.api('POST', `/tunnels/${tunnel.id}/down`)
  const after = await until('the new verdict to be said', async () => {
    const now = await said(page)
    return now !== before && now
  })
  assert.match(after, /BLOCKED/)
  watch.assertClean()
  await close()
}

/** Counts how often the verdict of the daemon changes, its numbers apart. */
function follow(page) {
  const seen = []
  const look = async (response) => {
    if (new URL(response.url()).pathname !== '/api/v1/status' || response.status() !== 200) return
    const body = await response.json().catch(() => undefined)
    const said = body?.data.verdict.sentence.replaceAll(/\d+/g, '')
    if (said !== undefined && seen.at(-1) !== said) seen.push(said)
  }
  page.on('response', look)
  return { changes: () => seen.length, end: () => page.off('response', look) }
}

/** What the regions of the frame say. */
function said(page) {
  return page
    .locator('#root > .sr')
    .allInnerTexts()
    .then((all) => all.join(' ').trim())
}

/** Notes each change in a live region from now on. */
function record(page) {
  return page.evaluate(() => {
    window.changes = []
    new window.MutationObserver((records) => {
      for (const { target } of records) {
        const element = target.nodeType === 1 ? target : target.parentElement
        const region = element?.closest(
          '[aria-live]:not([aria-live="off"]), [role="status"], [role="alert"], [role="log"]',
        )
        // A part that loads announces itself once, by its name.
        if (region && !region.classList.contains('loading'))
          window.changes.push(`${region.className}: ${region.textContent}`.slice(0, 120))
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: false })
  })
}

function changes(page) {
  return page.evaluate(() => window.changes)
}

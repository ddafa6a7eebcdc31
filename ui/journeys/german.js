// In German, the verdict, the reasons of a decision, checks and the audit trail are German. What stays English is marked.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** Words that only sentences of the gateway have. */
const ENGLISH =
  /\b(leaves?|matched|through (?:its|their)|cut off on purpose|is down|does not|no policy|it comes from|checked|remedy)\b/i

/** The text of a part of the page without what is marked as English. */
const unmarked = (page, selector) =>
  page.locator(selector).evaluateAll((all) =>
    all
      .map((each) => {
        const copy = each.cloneNode(true)
        for (const english of copy.querySelectorAll('[lang="en"]')) english.remove()
        return copy.textContent
      })
      .join(' '),
  )

export default async function german({ daemon, open }) {
  const { page, watch, close } = await open({ language: 'de' })
  await settled(page)
  await until('a verdict that was checked', async () => {
    const { verdict } = await daemon.api('GET', '/status')
    return verdict.phrases.some(({ code }) => code === 'some_blocked' || code === 'through_policy')
  })
  await page.locator('.verdict h1', { hasText: /Richtlinie/ }).waitFor()
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'de')
  assert.doesNotMatch(await unmarked(page, '.verdict h1'), ENGLISH)
  assert.doesNotMatch(await unmarked(page, '.rows--sub'), ENGLISH)
  assert.doesNotMatch(await unmarked(page, '.rows--sub'), /dns_listener/)

  const devices = await daemon.api('GET', '/devices')
  for (const device of devices.slice(0, 2)) {
    await page.goto(`/devices/${device.id}`)
    await settled(page)
    await page.locator('.ladder .is-hit, .ladder .rung--end, .ladder .rung--stop').first().waitFor()
    assert.doesNotMatch(await unmarked(page, '.ladder'), ENGLISH)
    assert.doesNotMatch(await unmarked(page, 'h1.sentence'), ENGLISH)
    // Nothing was asked about, so no address stands for the destination.
    await page.locator('.ladder', { hasText: 'beliebiges Ziel' }).waitFor()
  }

  await page.goto('/activity')
  await settled(page)
  await page.getByRole('cell', { name: 'Tunnel trennen' }).first().waitFor()
  assert.doesNotMatch(await unmarked(page, 'main'), /\b(create|replace|delete) [a-z]+\b/)
  watch.assertClean()
  await close()
}

// Every page without a mouse: Tab reaches each control, each has a name, is in view and shows the focus. Then one task in
// the query log by keys alone: filter, open a query, allow its name, undo.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { addresses, settled } from './lib/pages.js'

/** Stops of a page; long lists have more of the same. */
const MOST = 200

export default async function keyboard({ open }) {
  const { page, watch, close } = await open()
  const found = []
  for (const address of (await addresses(page)).tabs) {
    await page.goto(address)
    await settled(page)
    found.push(...(await walk(page)).map((each) => `${address}: ${each}`))
  }
  assert.equal(found.length, 0, found.join('\n'))
  await allowByKeys(page)
  watch.assertClean()
  await close()
}

/** Presses Tab through a page and returns what is wrong with its stops, and what it passed by. */
async function walk(page) {
  const problems = new Set()
  await page.evaluate(() => {
    window.stops = new Set()
  })
  let ended = false
  for (let count = 0; count < MOST && !ended; count += 1) {
    await page.keyboard.press('Tab')
    const problem = await page.evaluate(() => {
      const stop = document.activeElement
      if (!stop || stop === document.body || window.stops.has(stop)) return null
      window.stops.add(stop)
      const { width, height, top, bottom } = stop.getBoundingClientRect()
      const { outlineStyle, boxShadow, opacity } = window.getComputedStyle(stop)
      const name = [
        stop.getAttribute('aria-label'),
        stop.labels?.[0]?.innerText,
        stop.textContent,
        stop.getAttribute('placeholder'),
        stop.title,
      ].find(Boolean)
      const said = `${stop.tagName} ${(name ?? '').slice(0, 40)}`
      if (!name) return `no name: ${said}`
      if (width < 2 || height < 2 || opacity === '0') return `not to be seen: ${said}`
      if (bottom < 0 || top > window.innerHeight) return `out of view: ${said}`
      // A link of a drawing shows the focus by its shape.
      if (!stop.closest('svg') && outlineStyle === 'none' && boxShadow === 'none') return `no ring: ${said}`
      return ''
    })
    if (problem === null) ended = true
    else if (problem !== '') problems.add(problem)
  }
  if (!ended) return [...problems]
  const passed = await page.evaluate(() =>
    [...document.querySelectorAll('main :is(a[href], button, input, select, textarea, summary)')]
      .filter(
        (each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility() && !window.stops.has(each),
      )
      // Rows that came while the keys were pressed.
      .filter((each) => !each.closest('tbody'))
      .map((each) => `not reached: ${each.tagName} ${each.getAttribute('aria-label') ?? each.innerText}`),
  )
  return [...problems, ...passed]
}

async function allowByKeys(page) {
  const press = (key) => page.keyboard.press(key)
  const focused = () =>
    page.evaluate(() => {
      const { activeElement: stop } = document
      return `${stop.tagName} ${stop.getAttribute('aria-label') ?? ''} ${stop.innerText}`
    })
  const reach = async (what, key = 'Tab') => {
    for (let count = 0; count < MOST; count += 1) {
      if (what.test(await focused())) return
      await press(key)
    }
    assert.fail(`${what} is not reached, the focus is on ${await focused()}`)
  }
  await page.goto('/dns')
  await settled(page)
  await page.locator('.log tbody tr').first().waitFor()
  await press('/')
  await page.keyboard.type('tracker')
  await press('Enter')
  await page.waitForURL(/domain=tracker/)
  await until('the filtered list', async () =>
    (await page.locator('.log .q').allInnerTexts()).every((name) => name.includes('tracker')),
  )
  await reach(/^TR/)
  await press('Enter')
  await page.waitForURL(/open=/)
  await reach(/^BUTTON\s+(Allow|Block) this name/)
  await press('Enter')
  await page.locator('.toast').waitFor()
  await reach(/^BUTTON\s+Undo/, 'Shift+Tab')
  await press('Enter')
  await page.locator('.toast').waitFor({ state: 'detached' })
}

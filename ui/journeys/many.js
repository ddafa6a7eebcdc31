// 10 000 devices and 1 000 000 queries in the log: pages draw only what is in view, and filter all. The longest task of each
// page's thread is printed, and not judged: it depends on what else the machine does.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const DEVICES = 10_000
const QUERIES = 1_000_000
/** Most elements of a page. A page that draws all devices has more than 100 000. */
const ELEMENTS = 5000

const PAGES = ['/devices', '/dns', '/', '/policies']

/** Forms that choose one or several of the devices. */
const FORMS = [
  {
    address: '/policies/new',
    field: /^Device/,
    many: true,
    prepare: async (page) => {
      await page.getByLabel('Name', { exact: true }).pressSequentially('of many', { delay: 20 })
    },
  },
  {
    address: '/dns/lists?edit=rule%3Anew',
    field: /^Devices/,
    many: true,
  },
  { address: '/dns/privacy', field: 'For' },
]

export default async function many({ daemon, context, open }) {
  await daemon.api('POST', '/dns/blocklist', { domain: 'many.example' })
  const devices = Array.from({ length: DEVICES }, (_, n) => ({
    name: `device-${n}`,
    mac: `02:bb:00:${hex(n >> 16)}:${hex(n >> 8)}:${hex(n)}`,
  }))
  for (let first = 0; first < DEVICES; first += 2000)
    await daemon.api('POST', '/apply', { resources: { devices: devices.slice(first, first + 2000) } })
  const names = `${context.directory}/names`
  writeFileSync(names, Array.from({ length: QUERIES }, (_, n) => `n${n}.many.example A`).join('\n'))
  const said = await daemon.on(
    'laptop',
    'dnsperf',
    '-s',
    '192.168.10.1',
    '-d',
    names,
    '-n',
    '1',
    '-l',
    '240',
    '-O',
    'suppress=timeout',
  )
  console.log(
    said
      .split('\n')
      .filter((line) => /Queries|Run time/.test(line))
      .join('\n'),
  )
  const today = await until('the queries to be counted', async () => {
    const { queries_today } = await daemon.api('GET', '/dns/status')
    return queries_today >= QUERIES * 0.9 && queries_today
  })
  console.log(`${DEVICES} devices, ${today} queries`)
  for (const address of PAGES) {
    const { longest, elements } = await visit(open, address)
    console.log(`${address}: longest task ${longest.toFixed(0)} ms, ${elements} elements`)
    assert.ok(elements <= ELEMENTS, `${address}: ${elements} elements`)
  }
  for (const form of FORMS) {
    const elements = await choose(open, form)
    console.log(`${form.address}: ${elements} elements`)
    assert.ok(elements <= ELEMENTS, `${form.address}: ${elements} elements`)
  }
}

/** Types in a form that chooses among the devices, and chooses one by its name. Returns the elements of the page. */
async function choose(open, { address, prepare, field, many }) {
  const { page, watch, close } = await open({ path: address })
  await settled(page)
  await prepare?.(page)
  const main = page.locator('main')
  if (many) {
    const group = main.getByRole('group', { name: field })
    await group.getByLabel('Filter').pressSequentially('device-9876')
    const found = group.getByRole('checkbox', { name: 'device-9876', exact: true })
    await found.check()
    // What is typed elsewhere leaves it chosen.
    await group.getByLabel('Filter').fill('')
    await group.getByText(/^1 of 10/).waitFor()
  } else {
    const combo = main.getByRole('combobox', { name: field })
    await combo.click()
    await combo.pressSequentially('device-9876')
    await main
      .getByRole('option', { name: /device-9876$/ })
      .first()
      .waitFor()
    await combo.press('Enter')
    await until('the chosen device', async () => (await combo.inputValue()).includes('device-9876'))
  }
  const elements = await page.locator('*').count()
  watch.assertClean()
  await close()
  return elements
}

/**
 * Opens a page, scrolls through it and types a filter. Returns its longest task in milliseconds and the most elements that
 * it had.
 */
async function visit(open, address) {
  const { page, watch, close } = await open({ path: address })
  await settled(page)
  await page.evaluate(() => {
    window.longest = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
    }).observe({ type: 'longtask' })
  })
  let elements = 0
  for (let step = 0; step < 40; step++) {
    await page.mouse.wheel(0, 2000)
    await page.evaluate(() => new Promise(requestAnimationFrame))
    elements = Math.max(elements, await page.locator('*').count())
  }
  const filter = page.locator('[data-filter]').first()
  if ((await filter.count()) > 0) {
    await filter.pressSequentially('device-99', { delay: 20 })
    await page.evaluate(() => new Promise(requestAnimationFrame))
  }
  // device-99, and 10 and 100 with more digits.
  if (address === '/devices') await page.getByText(/^111 of 10.*shown/).waitFor()
  const longest = await page.evaluate(() => window.longest)
  watch.assertClean()
  await close()
  return { longest, elements }
}

function hex(n) {
  return (n & 0xff).toString(16).padStart(2, '0')
}

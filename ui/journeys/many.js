// 10 000 devices and 1 000 000 queries in the log: pages stay as quick as those of an empty gateway. The longest task of the
// page's thread is compared with that of the same page before, in the same run.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const DEVICES = 10_000
const QUERIES = 1_000_000
/** A task that is shorter counts as this long, in milliseconds: the resolution of what the browser reports. */
const SHORTEST = 50
/** Rounds, of which the best counts: other programs of the machine lengthen tasks too. */
const ROUNDS = 3
/** How much longer the longest task may be than on an empty gateway. */
const RATIO = 6

const PAGES = ['/devices', '/dns', '/', '/policies']

export default async function many({ daemon, context, open }) {
  const before = await longestTasks(open)
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
  const after = await longestTasks(open)
  console.log(`${DEVICES} devices, ${today} queries`)
  for (const address of PAGES) {
    const ratio = after[address] / before[address]
    console.log(
      `${address}: longest task ${after[address]} ms, of an empty gateway ${before[address]} ms, ratio ${ratio.toFixed(2)}`,
    )
    assert.ok(ratio <= RATIO, `${address}: ${ratio.toFixed(2)} times as long as on an empty gateway`)
  }
}

/** Returns the longest task of each page in the best of some rounds, in milliseconds. */
async function longestTasks(open) {
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await longestTasksOnce(open))
  return Object.fromEntries(PAGES.map((page) => [page, Math.min(...rounds.map((each) => each[page]))]))
}

/** Opens each page, scrolls through it and types a filter. Returns the longest task of each in milliseconds. */
async function longestTasksOnce(open) {
  const longest = {}
  for (const address of PAGES) {
    const { page, watch, close } = await open({ path: address })
    await settled(page)
    await page.evaluate(() => {
      window.longest = 0
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
      }).observe({ type: 'longtask' })
    })
    for (let step = 0; step < 40; step++) {
      await page.mouse.wheel(0, 2000)
      await page.evaluate(() => new Promise(requestAnimationFrame))
    }
    const filter = page.locator('[data-filter]').first()
    if ((await filter.count()) > 0) {
      await filter.pressSequentially('device-99', { delay: 20 })
      await page.evaluate(() => new Promise(requestAnimationFrame))
    }
    longest[address] = Math.max(SHORTEST, Math.round(await page.evaluate(() => window.longest)))
    watch.assertClean()
    await close()
  }
  return longest
}

function hex(n) {
  return (n & 0xff).toString(16).padStart(2, '0')
}

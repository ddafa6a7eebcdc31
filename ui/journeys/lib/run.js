// Runs one journey in a real browser against a running daemon: node journeys/lib/run.js NAME CONTEXT.json

import { mkdirSync, readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { Daemon } from './daemon.js'
import { Watch } from './watch.js'

const [name, file] = process.argv.slice(2)
const context = JSON.parse(readFileSync(file, 'utf8'))
const { default: journey } = await import(new URL(`../${name}.js`, import.meta.url))

const browser = await chromium.launch({
  executablePath: context.browser,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking'],
})
let failed = false
try {
  mkdirSync(context.artefacts, { recursive: true })
  await journey({
    browser,
    context,
    daemon: new Daemon(context),
    open: (options) => open(browser, context, options),
  })
  console.log(`journey ${name}: passed`)
} catch (error) {
  failed = true
  console.error(`journey ${name}: ${error.stack ?? error}`)
  for (const [index, page] of browser
    .contexts()
    .flatMap((each) => each.pages())
    .entries()) {
    const picture = `${context.artefacts}/failed-${name}-${index}.png`
    await page.screenshot({ path: picture, fullPage: true }).catch(() => undefined)
    console.error(`  page at ${page.url()}: ${picture}`)
  }
} finally {
  await browser.close()
}
process.exitCode = failed ? 1 : 0

/** Opens a page of the dashboard. What the browser reports as an error fails the journey. */
async function open(
  browser,
  context,
  { path = '/', width = 1440, height = 900, theme = 'light', language = 'en', wizard = false } = {},
) {
  const session = await browser.newContext({
    baseURL: context.base,
    viewport: { width, height },
    colorScheme: theme,
    locale: language === 'de' ? 'de-DE' : 'en-GB',
    reducedMotion: 'reduce',
  })
  await session.addInitScript(
    ([language, wizard]) => {
      localStorage.setItem('gateway.language', language)
      if (!wizard) localStorage.setItem('gateway.first-run', 'done')
    },
    [language, wizard],
  )
  const page = await session.newPage()
  page.setDefaultTimeout(30_000)
  const watch = new Watch(page, context.base)
  await page.goto(path)
  await page.locator('main').waitFor()
  /** Keeps a picture of the page. */
  const shot = (picture) => page.screenshot({ path: `${context.artefacts}/${picture}.png`, fullPage: true })
  return { page, watch, shot, close: () => session.close() }
}

// Every page, in both themes, at two widths and in both languages: it shows its data without an error of the browser, axe
// finds nothing, nothing is wider than the window. The pictures are artefacts.

import assert from 'node:assert/strict'
import { violations } from './lib/axe.js'
import { addresses, fileOf, settled } from './lib/pages.js'

const VARIANTS = [
  { theme: 'light', width: 1440, details: true },
  { theme: 'dark', width: 360, height: 740, language: 'de', details: true },
  { theme: 'dark', width: 1440 },
  { theme: 'light', width: 360, height: 740 },
]

export default async function pages({ context, open }) {
  const found = []
  const first = await open()
  const all = await addresses(first.page)
  await first.close()
  assert.ok(all.tabs.length >= 30, `only ${all.tabs.length} pages`)
  assert.ok(all.details.length >= 30, `only ${all.details.length} details`)
  for (const { theme, width, height = 900, language = 'en', details } of VARIANTS) {
    const { page, watch, close } = await open({ theme, width, height, language })
    for (const address of details ? [...all.tabs, ...all.details] : all.tabs) {
      await page.goto(address)
      await settled(page)
      const picture = `${fileOf(address)}-${width}-${theme}${language === 'en' ? '' : `-${language}`}`
      await page.screenshot({ path: `${context.artefacts}/${picture}.png`, fullPage: true })
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      )
      if (over > 0) found.push(`${picture}: ${over} px wider than the window`)
      found.push(...(await violations(page)).map((each) => `${picture}: ${each}`))
    }
    watch.assertClean()
    await close()
  }
  assert.equal(found.length, 0, found.join('\n'))
}

// Accessibility of a page as it is.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds by the rules of WCAG 2.2 AA. It runs beside the page, so the page's policy need not allow it. */
export async function violations(page) {
  const session = await page.context().newCDPSession(page)
  await session.send('Runtime.evaluate', { expression: AXE })
  const { result } = await session.send('Runtime.evaluate', {
    expression: `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })
      .then((found) => JSON.stringify(found.violations.map(({ id, nodes }) =>
        id + ' ' + nodes.map(({ target, failureSummary }) => target.join(' ') + ' ' + failureSummary).join('; '))))`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  return JSON.parse(result.value)
}

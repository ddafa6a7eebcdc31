// All pages that the navigation offers, found as a user finds them: by the entries and their tabs.

/** Returns the addresses of all entries and tabs. */
export async function addresses(page) {
  const found = new Set()
  const entries = await links(page, '.nav a')
  for (const entry of entries) {
    await page.goto(entry)
    await settled(page)
    found.add(entry)
    for (const tab of await links(page, 'main .tabs a')) found.add(tab)
  }
  return [...found]
}

async function links(page, selector) {
  return page.locator(selector).evaluateAll((all) => all.map((each) => new URL(each.href).pathname))
}

/** Waits until a page shows its data. */
export async function settled(page) {
  await page.locator('main').waitFor()
  await page.waitForFunction(
    () => !document.querySelector('main .loading, body > #root > .loading'),
    undefined,
    {
      timeout: 20_000,
    },
  )
  // Fonts and late answers move no boxes any more.
  await page.evaluate(() => document.fonts.ready)
}

/** The name of a file for an address. */
export function fileOf(address) {
  return address === '/' ? 'overview' : address.slice(1).replaceAll('/', '-')
}

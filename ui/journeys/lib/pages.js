// All pages that the navigation offers, found as a user finds them: by the entries, their tabs and the links in them.

/** Pages behind a button of their list. */
const FORMS = [
  '/activity/tests/new',
  '/network/dhcp/new',
  '/network/segments/new',
  '/network/uplinks/edit',
  '/paths/bridges/new',
  '/paths/proxies/new',
  '/paths/tunnels/import',
  '/paths/tunnels/new',
  '/policies/chains/new',
  '/policies/classes/new',
  '/policies/new',
  '/policies/presets/new',
  '/policies/profiles/new',
  '/system/users/new',
]

/** Returns the addresses of all entries and tabs, and of one page of each kind that they link to. */
export async function addresses(page) {
  const tabs = new Set()
  const entries = await links(page, '.nav a')
  for (const entry of entries) {
    await page.goto(entry)
    await settled(page)
    tabs.add(entry)
    for (const tab of await links(page, 'main .tabs a')) tabs.add(tab)
  }
  const details = new Map(FORMS.map((form) => [form, form]))
  let visit = [...tabs]
  // Details have tabs and details of their own.
  for (let depth = 0; depth < 2; depth += 1) {
    const before = details.size
    for (const address of visit) {
      await page.goto(address)
      await settled(page)
      for (const link of await links(page, 'main a')) {
        const kind = kindOf(link)
        if (
          !tabs.has(link) &&
          entries.some((entry) => under(entry, link)) &&
          !FORMS.includes(link) &&
          !details.has(kind)
        )
          details.set(kind, link)
      }
    }
    visit = [...details.values()].slice(before)
  }
  return { tabs: [...tabs], details: [...details.values()] }
}

/** Addresses that differ only in an id, a name or a filter are of one kind. */
function kindOf(link) {
  const { pathname, searchParams } = new URL(link, 'http://gateway')
  const parts = pathname.split('/')
  const last = parts.pop()
  return `${parts.join('/')}/${last === 'new' ? 'new' : '*'} ${searchParams.get('tab') ?? ''}`
}

function under(entry, link) {
  return entry !== '/' && link.startsWith(`${entry}/`)
}

/** Addresses of links, with the tab that they name and without filters. */
async function links(page, selector) {
  // Links of a graph have an animated address.
  const found = await page
    .locator(selector)
    .evaluateAll((all) => all.map((each) => each.href.baseVal ?? each.href))
  return found
    .map((address) => new URL(address, page.url()))
    .filter(({ origin }) => origin === new URL(page.url()).origin)
    .map(({ pathname, searchParams }) => {
      const tab = searchParams.get('tab')
      return tab === null ? pathname : `${pathname}?tab=${tab}`
    })
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
  const ids = /[0-9a-f]{8}-[0-9a-f-]{27}/g
  return address === '/'
    ? 'overview'
    : address
        .slice(1)
        .replace(ids, 'one')
        .replaceAll(/[/?=:]/g, '-')
}

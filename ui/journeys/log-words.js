// The query log says what became of a query in the words of its policy: blocked because a tunnel is down, or allowed and gone
// out directly.

import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

export default async function words({ daemon, open }) {
  const tunnel = (await daemon.api('GET', '/tunnels')).find(({ name }) => name === 'wg-a')
  await daemon.api('POST', `/tunnels/${tunnel.id}/down`)
  const asked = async (host, name, said) => {
    await daemon.on(host, 'dig', '+tries=1', '+time=2', '@192.168.10.1', name)
    return (await daemon.api('GET', `/dns/log?domain=${name}`)).some(said)
  }
  // The laptop has a policy by wg-a alone, the television an exception.
  await until('a query that is blocked', () =>
    asked('laptop', 'blocked.words.example', ({ left_by }) => left_by?.text === 'Blocked: wg-a is down'),
  )
  await until('a query that leaves directly', () =>
    asked('tv', 'direct.words.example', ({ left_by }) => left_by?.text === 'Allowed, direct'),
  )
  const { page, watch, close } = await open({ path: '/dns?domain=words.example' })
  await settled(page)
  const row = (name) => page.locator('.log tbody tr', { hasText: name }).first()
  await row('blocked.words.example').getByText('Blocked: wg-a is down', { exact: true }).waitFor()
  await row('direct.words.example').locator('.st--direct', { hasText: 'Allowed, direct' }).waitFor()
  watch.assertClean()
  await close()
}

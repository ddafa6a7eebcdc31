// The page of a device leads to a capture of its packets: they appear with the decision on each, are narrowed and held, and
// the download has them. A filter that libpcap refuses is an error of its field.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { violations } from './lib/axe.js'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

/** Outside of the gateway; the packets of the laptop leave for it by a tunnel. */
const ADDRESS = '198.18.0.1'

export default async function captures({ context, daemon, open }) {
  const laptop = (await daemon.api('GET', '/devices')).find(({ name }) => name === 'laptop')
  assert.ok(laptop, 'the laptop is a device')
  const { page, watch, shot, close } = await open({ path: `/devices/${laptop.id}` })
  await settled(page)
  await page.getByRole('button', { name: 'Capture this device' }).click()
  await page.getByRole('menuitem', { name: 'All packets' }).click()
  await page.waitForURL(/\/activity\/captures\?device=/)
  await page.getByText(`ether host ${context.devices.laptop}`).waitFor()

  const start = page.getByRole('button', { name: 'Start capture' })
  const filter = page.getByLabel('Filter', { exact: true })
  await filter.fill('port http and and')
  await start.click()
  await page
    .getByText(/libpcap refuses the filter/)
    .first()
    .waitFor()
  await filter.fill('icmp')
  await start.click()
  await page.waitForURL(/\/activity\/captures\/[0-9a-f-]{36}$/)
  const id = new URL(page.url()).pathname.split('/').at(-1)

  // The packets come by the stream.
  const rows = page.getByRole('table', { name: 'Packets' }).locator('tbody tr')
  await until('packets', async () => {
    await daemon.on('laptop', 'ping', '-c', '1', '-W', '1', ADDRESS)
    return (await rows.count()) > 0
  })
  const request = rows.filter({ hasText: 'echo request' }).filter({ hasText: ADDRESS }).first()
  await request.waitFor()
  assert.match(await request.innerText(), /laptop[\s\S]*ICMP[\s\S]*Through a hop[\s\S]*vpn-only → wg-a/)
  await shot('captures-packets')
  assert.deepEqual(await violations(page), [])

  const phone = await open({
    path: `/activity/captures/${id}`,
    theme: 'dark',
    width: 360,
    height: 740,
    language: 'de',
  })
  await settled(phone.page)
  await phone.page.getByText('vpn-only → wg-a').first().waitFor()
  const over = () => document.documentElement.scrollWidth - document.documentElement.clientWidth
  assert.equal(await phone.page.evaluate(over), 0, 'it is wider than the window')
  assert.deepEqual(await violations(phone.page), [])
  await phone.shot('captures-packets-phone')
  phone.watch.assertClean()
  await phone.close()

  // The filters narrow the list, and the address has them.
  await page.getByRole('searchbox').fill('echo reply')
  await until('the replies only', async () => {
    const said = await rows.allInnerTexts()
    return said.length > 0 && said.every((each) => each.includes('echo reply'))
  })
  assert.match(page.url(), /words=echo/)
  await page.getByRole('searchbox').fill('')
  await page.getByLabel('Decision').selectOption('direct')
  await page.getByText('No packet matches these filters.').waitFor()
  await page.getByLabel('Decision').selectOption('tunnel')
  await request.waitFor()
  await page.getByLabel('Decision').selectOption('')

  // A held list does not change while packets come.
  await page.getByRole('button', { name: 'Hold' }).click()
  const held = await rows.count()
  await until('packets that wait', async () => {
    await daemon.on('laptop', 'ping', '-c', '1', '-W', '1', ADDRESS)
    return page.getByRole('button', { name: /Go on, [1-9]\d* wait/ }).isVisible()
  })
  assert.equal(await rows.count(), held)
  await page.getByRole('button', { name: /Go on/ }).click()
  await until('more rows', async () => (await rows.count()) > held)

  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await until('the end', async () => /^Stopped\. \d+ packets/.test(await page.locator('h1').innerText()))
  const ended = await daemon.api('GET', `/diagnostics/capture/${id}?limit=1000`)
  assert.equal(ended.state, 'stopped')
  await until('all packets', async () => (await rows.count()) === ended.packets)

  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  const file = readFileSync(await (await downloading).path())
  const { packets, comments } = packetsOf(file)
  assert.equal(packets, ended.packets)
  assert.ok(
    comments.some((each) => /decision=tunnel .*egress="vpn:wg-a"/.test(each)),
    comments.join('\n'),
  )

  // One that has ended is deleted.
  await page.getByRole('button', { name: 'Delete' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type lan to confirm').fill('lan')
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.waitForURL(/\/activity\/captures$/)
  await until('no capture', async () =>
    (await daemon.api('GET', '/diagnostics/captures')).every((each) => each.id !== id),
  )
  watch.assertClean()
  await close()
}

/** Type of the block of a packet in a file of pcapng, and that of the option that has its comment. */
const PACKET = 6
const COMMENT = 1

/** The number of packets in a file of pcapng, little-endian, and their comments. */
function packetsOf(file) {
  let packets = 0
  const comments = []
  for (let at = 0; at < file.length; at += file.readUInt32LE(at + 4)) {
    if (file.readUInt32LE(at) !== PACKET) continue
    packets += 1
    const end = at + file.readUInt32LE(at + 4) - 4
    let option = at + 28 + padded(file.readUInt32LE(at + 20))
    while (option + 4 <= end && file.readUInt16LE(option) !== 0) {
      const length = file.readUInt16LE(option + 2)
      if (file.readUInt16LE(option) === COMMENT)
        comments.push(file.toString('utf8', option + 4, option + 4 + length))
      option += 4 + padded(length)
    }
  }
  return { packets, comments }
}

const padded = (length) => Math.ceil(length / 4) * 4

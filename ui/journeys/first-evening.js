// The first evening: the first account, a tunnel, a device and its policy by the setup, the proof; then the tunnel goes down,
// the dashboard says BLOCKED and why, an exception lets the device out, a name is blocked from the log, a
// rollback takes that back, and the session ends over a form.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { settled } from './lib/pages.js'

const USER = 'anna'
const PASSWORD = 'a long enough password'
const NAME = 'tracker.example'

export default async function firstEvening({ daemon, context, open }) {
  const { page, watch, shot, close } = await open({ wizard: true })
  const button = (name) => page.getByRole('button', { name, exact: true })

  // The first account; it signs in.
  await shot('wizard-1')
  await page.getByLabel('User name', { exact: true }).fill(USER)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.locator('[data-next]').click()

  // The ground is only looked at, and the wires are those of the configuration.
  await page.getByRole('heading', { name: 'Check the ground' }).waitFor()
  await settled(page)
  await shot('wizard-2')
  await button('Continue').click()
  await page.getByRole('heading', { name: 'Which wire is which' }).waitFor()
  await settled(page)
  await shot('wizard-3')
  await button('Skip').click()

  await page.getByRole('heading', { name: 'Names and hosts' }).waitFor()
  await settled(page)
  await button('Skip').click()

  // A tunnel from the file of a provider.
  await page.getByRole('heading', { name: 'Bring a path' }).waitFor()
  await page.getByLabel('Or paste the text of the file').fill(context.exits.a)
  await page.getByLabel('Name', { exact: true }).fill('wg-a')
  await shot('wizard-4')
  await button('Import and bring it up').click()

  // The first device, fail-closed.
  await page.getByRole('heading', { name: 'Choose what happens on failure' }).waitFor()
  await page.getByLabel('Name', { exact: true }).fill('laptop')
  await page.getByLabel('MAC address').fill(context.devices.laptop)
  await shot('wizard-5')
  await button('Save and apply').click()

  // The pulled tunnel and the zero.
  await page.getByRole('heading', { name: 'Prove it' }).waitFor()
  const works = () => daemon.on('laptop', 'curl', '-s', '-m', '2', 'http://198.18.0.1/ip')
  const exit = await until('the laptop to leave through the tunnel', works)
  await button('Pull the tunnel now').click()
  await page.getByText('packets escaped').waitFor({ timeout: 120_000 })
  await shot('wizard-6')
  assert.match(await page.locator('.proof').innerText(), /^\s*0\b/)
  assert.equal(await until('the tunnel to be back', works), exit)
  await button('Continue').click()
  await page.getByRole('heading', { name: 'Save the way back' }).waitFor()
  await shot('wizard-7')
  await button('Open the dashboard').click()
  const chip = page.locator('.top .chip')
  await until('OK', async () => /OK/.test(await chip.innerText()))

  // The tunnel goes down: BLOCKED, and why.
  await page.goto('/paths')
  await settled(page)
  await page.getByRole('link', { name: 'wg-a' }).first().click()
  await button('Take down').click()
  await until('BLOCKED', async () => /BLOCKED/.test(await chip.innerText()))
  assert.equal(await works(), '')
  await page.goto('/devices')
  await page.getByRole('link', { name: 'laptop' }).first().click()
  await settled(page)
  await until('the reason', async () => /wg-a/.test(await page.locator('main').innerText()))
  await shot('devices-why-blocked')

  // An exception lets the device out for a while, and ends early.
  await button('Allow for 60 min').first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason', { exact: true }).fill('a film')
  await dialog.getByRole('button', { name: 'Allow', exact: true }).click()
  const outside = await until('the laptop to be let out', works)
  assert.notEqual(outside, exit)
  await page.goto('/policies/exceptions')
  await button('End now').first().click()
  await until('the end of the exception', async () => (await works()) === '')

  // The tunnel is brought up again where the reason is shown.
  await page.goto('/devices')
  await page.getByRole('link', { name: 'laptop' }).first().click()
  await button('Reconnect wg-a').click()
  assert.equal(await until('the tunnel to be back', works), exit)

  // A name is blocked from the log.
  await page.goto('/system/snapshots')
  await page.getByLabel('Name', { exact: true }).fill('evening')
  await button('Take a snapshot').click()
  await page.getByRole('cell', { name: 'evening', exact: true }).waitFor()
  const asked = () => daemon.on('laptop', 'dig', '+short', '+tries=1', '+time=2', '@192.168.10.1', NAME)
  const answer = await until('an answer', asked)
  await page.goto('/dns')
  await settled(page)
  await button(`Actions for ${NAME}`).first().click()
  await page.getByRole('menuitem', { name: 'Block this name' }).click()
  await until('the name to be blocked', async () => (await asked()) !== answer)

  // Back to the snapshot, which says before what would change; the change waits for its confirmation.
  await page.goto('/system/snapshots')
  await page
    .getByRole('row')
    .filter({ has: page.getByRole('cell', { name: 'evening', exact: true }) })
    .getByRole('button', { name: 'Compare' })
    .click()
  await page.getByText('From now back to evening').waitFor()
  await page.getByText(NAME).first().waitFor()
  await button('Roll back').click()
  await dialog.getByLabel('Type evening to confirm').fill('evening')
  await dialog.getByRole('button', { name: 'Roll back' }).click()
  await button('Keep').click()
  await until('the name to be answered', async () => (await asked()) === answer)

  // The session ends over a form: nothing that was typed is lost.
  await page.goto('/policies')
  await page.getByRole('link', { name: 'laptop' }).first().click()
  await settled(page)
  await page.getByLabel('Description', { exact: true }).fill('the first evening')
  await page.context().clearCookies()
  const saved = page.waitForResponse(
    (response) => response.request().method() === 'PUT' && response.status() === 200,
  )
  await button('Save').click()
  await dialog.getByLabel('User name', { exact: true }).fill(USER)
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Sign in' }).click()
  await saved
  await dialog.waitFor({ state: 'hidden' })
  await page.reload()
  await settled(page)
  assert.equal(await page.getByLabel('Description', { exact: true }).inputValue(), 'the first evening')

  // On a phone one signs out by the menu.
  await page.setViewportSize({ width: 360, height: 740 })
  await button('More').click()
  await dialog.getByText(USER).waitFor()
  await dialog.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await shot('sign-in-360')

  watch.assertClean()
  await close()
}

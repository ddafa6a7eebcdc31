// The setup and the sign-in without a mouse: Tab, Enter, Space, arrows and typing lead through all steps, each control is
// reached and shows the focus, and none keeps it. Then out by the menu of the account, and in again.

import assert from 'node:assert/strict'
import { until } from './lib/daemon.js'
import { Keys } from './lib/keys.js'
import { settled } from './lib/pages.js'

const USER = 'anna'
const PASSWORD = 'a long enough password'

export default async function setupByKeys({ daemon, context, open }) {
  const { page, watch, close } = await open({ wizard: true })
  const keys = new Keys(page)
  const found = []
  /** A step has its heading, which has the focus; all its controls are reached. */
  const step = async (heading, ready = async () => true) => {
    await page.getByRole('heading', { name: heading, exact: true, level: 1 }).waitFor()
    await until(`the focus on ${heading}`, async () => (await keys.focused()) === `H1  ${heading}`)
    await page.locator('.wiz__body .loading').waitFor({ state: 'detached' })
    await until(`${heading} to be ready`, ready)
    found.push(...(await keys.walk('.wiz')).map((each) => `${heading}: ${each}`))
  }

  await step('Create the admin')
  await keys.reach(/^INPUT User name/)
  await keys.type(USER)
  await keys.press('Tab')
  await keys.type(PASSWORD)
  // What was typed can be looked at.
  await keys.press('Tab')
  await keys.press('Space')
  assert.equal(await page.getByLabel('Password', { exact: true }).getAttribute('type'), 'text')
  await keys.press('Space')
  await keys.reach(/^INPUT Password/, 'Shift+Tab')
  await keys.press('Enter')

  await step('Check the ground')
  await keys.reach(/^BUTTON\s+Continue/)
  await keys.press('Enter')

  // Another uplink by an arrow and back; that took the LAN away, which Space chooses again.
  await step('Which wire is which')
  await keys.reach(/^INPUT eth0 is the uplink/)
  await keys.press('ArrowDown')
  await keys.press('ArrowUp')
  assert.match(await keys.focused(), /eth0 is the uplink/)
  await keys.reach(/^INPUT eth1 is a LAN/)
  if (!(await page.getByLabel('eth1 is a LAN').isChecked())) await keys.press('Space')
  assert.ok(await page.getByLabel('eth0 is the uplink').isChecked())
  assert.ok(await page.getByLabel('eth1 is a LAN').isChecked())
  await keys.reach(/^BUTTON\s+Continue/)
  await keys.press('Enter')

  // Resolvers by arrows; what the configuration has is kept.
  await step('Names and hosts')
  await keys.reach(/^INPUT Keep what is set/)
  await keys.press('ArrowDown')
  assert.match(await keys.focused(), /^INPUT Quad9/)
  await keys.reach(/^BUTTON\s+Skip/)
  await keys.press('Enter')

  // The text of a file; its name has the focus then.
  await step('Bring a path')
  await keys.reach(/^TEXTAREA/)
  await page.keyboard.insertText(context.exits.a)
  await until('the focus on the name', async () => /^INPUT Name/.test(await keys.focused()))
  found.push(...(await keys.walk('.wiz')).map((each) => `the read file: ${each}`))
  await keys.reach(/^INPUT Name/)
  await keys.press('Control+a')
  await keys.type('wg-a')
  await keys.press('Enter')

  await step('Choose what happens on failure')
  await keys.reach(/^INPUT Fail-closed/)
  await keys.press('ArrowDown')
  assert.match(await keys.focused(), /^INPUT Fail-open/)
  await keys.press('ArrowUp')
  await keys.reach(/^INPUT Name/)
  await keys.type('laptop')
  await keys.press('Tab')
  await keys.type(context.devices.laptop)
  await keys.press('Enter')

  // The tunnel can be pulled once it is up.
  await step('Prove it', () => page.getByRole('button', { name: 'Pull the tunnel now' }).isEnabled())
  const works = () => daemon.on('laptop', 'curl', '-s', '-m', '2', 'http://198.18.0.1/ip')
  await until('the laptop to leave through the tunnel', works)
  await keys.reach(/^BUTTON\s+Pull the tunnel now/)
  await keys.press('Enter')
  await page.getByText('packets escaped').waitFor({ timeout: 120_000 })
  assert.match(await page.locator('.proof').innerText(), /^\s*0\b/)
  // The button goes on now, and has kept the focus.
  assert.match(await keys.focused(), /^BUTTON\s+Continue/)
  found.push(...(await keys.walk('.wiz')).map((each) => `the proof: ${each}`))
  await keys.reach(/^BUTTON\s+Continue/)
  await keys.press('Enter')

  await step('Save the way back')
  // A step before is opened and left again.
  await keys.reach(/^BUTTON\s+Back/)
  await keys.press('Enter')
  await page.getByRole('heading', { name: 'Prove it', level: 1 }).waitFor()
  await keys.reach(/^BUTTON\s+Skip/)
  await keys.press('Enter')
  await page.getByRole('heading', { name: 'Save the way back', level: 1 }).waitFor()
  await keys.reach(/^INPUT Passphrase/)
  await keys.type('a long enough passphrase')
  await keys.reach(/^INPUT Repeat/)
  await keys.type('a long enough passphrase')
  const file = page.waitForEvent('download')
  await keys.press('Enter')
  await file
  await keys.reach(/^BUTTON\s+Open the dashboard/)
  await keys.press('Enter')
  await page.locator('.top .chip').waitFor()
  assert.equal(found.length, 0, found.join('\n'))

  await signInByKeys(page, keys)
  watch.assertClean()
  await close()
}

/** Out by the menu of the account, in with a wrong password and a right one; and in again over a form. */
async function signInByKeys(page, keys) {
  const dialog = page.getByRole('dialog')
  const choose = async (button, item) => {
    await settled(page)
    await keys.reach(button)
    await keys.press('Enter')
    await page.getByRole('menu').waitFor()
    await keys.reach(item, 'ArrowDown')
    await keys.press('Enter')
  }
  await choose(new RegExp(`^BUTTON .*${USER}`), /Sign out/)
  await page.locator('.banner').waitFor()
  await choose(/^BUTTON .*[Aa]ccount/, /Sign in/)
  await dialog.waitFor()
  await until('the focus on the name', async () => /^INPUT User name/.test(await keys.focused()))
  assert.deepEqual(await keys.walk('dialog[open]'), [])
  await keys.reach(/^INPUT User name/)
  await keys.type(USER)
  await keys.press('Tab')
  await keys.type('not the right password')
  await keys.press('Enter')
  await dialog.getByRole('alert').waitFor()
  assert.match(await keys.focused(), /^INPUT Password/)
  await keys.press('Control+a')
  await keys.type(PASSWORD)
  await keys.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: USER }).waitFor()

  await page.goto('/policies/new')
  await settled(page)
  await keys.reach(/^INPUT Name/)
  await keys.type('by-keys')
  await keys.reach(/^INPUT Description/)
  await keys.type('typed before the session ended')
  await page.context().clearCookies()
  await keys.press('Control+Enter')
  await dialog.waitFor()
  await keys.reach(/^INPUT User name/)
  await keys.press('Control+a')
  await keys.type(USER)
  await keys.press('Tab')
  await keys.type(PASSWORD)
  await keys.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  assert.equal(
    await page.getByLabel('Description', { exact: true }).inputValue(),
    'typed before the session ended',
  )
}

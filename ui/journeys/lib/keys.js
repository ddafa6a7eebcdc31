// A page without a mouse: keys are pressed, and each stop of Tab must have a name, be in view and show the focus.

import assert from 'node:assert/strict'

/** Stops of a page; long lists have more of the same. */
const MOST = 200

export class Keys {
  constructor(page) {
    this.page = page
  }

  press(key) {
    return this.page.keyboard.press(key)
  }

  async type(text) {
    await this.page.keyboard.type(text)
  }

  /** The element with the focus: its tag, its name and its text. */
  focused() {
    return this.page.evaluate(() => {
      const stop = document.activeElement
      const label = stop.getAttribute('aria-label') ?? stop.labels?.[0]?.innerText ?? ''
      return `${stop.tagName} ${label} ${(stop.innerText ?? '').slice(0, 80)}`.trim()
    })
  }

  /** Presses a key until the focus is where it should be, and checks that it is to be seen. */
  async reach(what, key = 'Tab') {
    for (let count = 0; count < MOST; count += 1) {
      if (what.test(await this.focused())) {
        assert.equal((await this.look())?.problem ?? '', '')
        return
      }
      await this.press(key)
    }
    assert.fail(`${what} is not reached, the focus is on ${await this.focused()}`)
  }

  /** Presses Tab through a page and returns what is wrong with its stops, and what of a part of it was passed by. */
  async walk(part = 'main') {
    const problems = new Set()
    await this.page.evaluate(() => {
      window.stops = new Set()
    })
    // One round: from where the focus is to the end of the page, and from its beginning to the first stop again.
    let ended = false
    for (let count = 0, edges = 0; count < MOST && !ended; count += 1) {
      await this.press('Tab')
      const seen = await this.look()
      if (seen === null) edges += 1
      else if (seen.problem !== '') problems.add(seen.problem)
      ended = edges > 1 || seen?.again === true
    }
    if (!ended) return [...problems]
    const passed = await this.page.evaluate(
      (part) =>
        [...document.querySelectorAll(`${part} :is(a[href], button, input, select, textarea, summary)`)]
          .filter(
            (each) =>
              !each.disabled && each.tabIndex >= 0 && each.checkVisibility() && !window.stops.has(each),
          )
          // Rows that came while the keys were pressed.
          .filter((each) => !each.closest('tbody') || each.closest('.wiz'))
          // Arrows lead from one radio button to the others of its group.
          .filter(
            (each) =>
              each.type !== 'radio' ||
              ![...window.stops].some((stop) => stop.type === 'radio' && stop.name === each.name),
          )
          .map((each) => `not reached: ${each.tagName} ${each.getAttribute('aria-label') ?? each.innerText}`),
      part,
    )
    return [...problems, ...passed]
  }

  /** What is wrong with the element with the focus, and whether it had it before; null if none has it. */
  look() {
    return this.page.evaluate(() => {
      const stop = document.activeElement
      if (!stop || stop === document.body) return null
      window.stops ??= new Set()
      const again = window.stops.has(stop)
      window.stops.add(stop)
      const { width, height, top, bottom } = stop.getBoundingClientRect()
      const { outlineStyle, boxShadow, opacity } = window.getComputedStyle(stop)
      const name = [
        stop.getAttribute('aria-label'),
        stop.labels?.[0]?.innerText,
        stop.textContent,
        stop.getAttribute('placeholder'),
        stop.title,
      ].find(Boolean)
      const said = `${stop.tagName} ${(name ?? '').slice(0, 40)}`
      const problem = !name
        ? `no name: ${said}`
        : width < 2 || height < 2 || opacity === '0'
          ? `not to be seen: ${said}`
          : bottom < 0 || top > window.innerHeight
            ? `out of view: ${said}`
            : // A link of a drawing shows the focus by its shape.
              !stop.closest('svg') && outlineStyle === 'none' && boxShadow === 'none'
              ? `no ring: ${said}`
              : ''
      return { problem, again }
    })
  }
}

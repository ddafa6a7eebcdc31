// What a page asks for and what the browser complains about.

import assert from 'node:assert/strict'

export class Watch {
  constructor(page, base) {
    this.base = base
    this.problems = []
    this.requests = []
    page.on('pageerror', (error) => this.problems.push(`error: ${error.message}`))
    page.on('console', (message) => {
      // A failed request is no error of the page; it shows what the daemon said.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        this.problems.push(`console: ${message.text()}`)
      if (message.text().includes('Content Security Policy')) this.problems.push(`policy: ${message.text()}`)
    })
    page.on('request', (request) => this.requests.push(`${request.method()} ${request.url()}`))
  }

  /** Fails if the browser reported an error, or if the page asked another server. */
  assertClean() {
    assert.deepEqual(this.problems, [])
    const foreign = this.requests.filter((request) => {
      const url = request.split(' ')[1] ?? ''
      return !url.startsWith(this.base) && !url.startsWith('blob:') && !url.startsWith('data:')
    })
    assert.deepEqual(foreign, [], 'requests to other servers')
  }
}

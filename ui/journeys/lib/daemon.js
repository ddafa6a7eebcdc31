// The daemon and its network, for what a journey does beside the browser.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export class Daemon {
  constructor(context) {
    this.context = context
  }

  /** Calls the REST API and returns the data. */
  async api(method, path, body) {
    const response = await fetch(`${this.context.base}/api/v1${path}`, {
      method,
      headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text).data
  }

  /** Runs a program on a host of the network (`laptop`, `tv`, `gateway`). Its failure is an answer as well. */
  async on(host, ...command) {
    const namespace = this.context.namespaces[host]
    try {
      const { stdout } = await run('nsenter', [`--net=/run/netns/${namespace}`, ...command])
      return stdout.trim()
    } catch (error) {
      return (error.stdout ?? '').trim()
    }
  }

  /** Waits until the hosts of the LAN have answered the gateway and are listed. */
  async hostsToBeSeen() {
    const { laptop, tv } = this.context.devices
    const seen = async () => {
      for (const host of ['laptop', 'tv']) await this.on(host, 'ping', '-c', '1', '-W', '1', '192.168.10.1')
      const known = await this.api('GET', '/hosts?confirmed=true')
      return [laptop, tv].every((mac) => known.some((host) => host.mac === mac))
    }
    await until('the hosts to be seen', seen, 60_000)
  }

  /** Stops the daemon without ending it, so that it answers nothing. */
  pause() {
    process.kill(this.context.pid, 'SIGSTOP')
  }

  resume() {
    process.kill(this.context.pid, 'SIGCONT')
  }
}

/** Waits until something holds. */
export async function until(what, holds, milliseconds = 30_000) {
  const end = Date.now() + milliseconds
  for (;;) {
    const value = await holds()
    if (value) return value
    if (Date.now() > end) throw new Error(`${what}: not within ${milliseconds / 1000} s`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

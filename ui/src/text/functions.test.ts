import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { de } from './de'
import { en } from './en'

/** Returns the sources of the daemon below a folder. */
function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.rs'))
    .map((file) => readFileSync(join(folder, file), 'utf8'))
}

describe('functions of the gateway', () => {
  it('have a name in each language', () => {
    const services = sources('../gateway-ctl/src').flatMap((source) =>
      [...source.matchAll(/Service::new\(\s*"(\w+)"/g)].map((found) => found[1] ?? ''),
    )
    expect(services.length).toBeGreaterThan(30)
    for (const { functions } of [en, de]) {
      expect(services.filter((service) => !(service in functions))).toEqual([])
    }
  })
})

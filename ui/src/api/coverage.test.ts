// Every operation of the REST API is used by a page, or listed as unused with the reason.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { supported } from './supported'
import { unused } from './unused'

const SOURCES = join(__dirname, '..')

/** What the kit does with one object of a kind. */
const OF_ONE = ['GET', 'PUT', 'DELETE']

function* files(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* files(path)
    else if (/\.tsx?$/.test(entry.name) && !/\.test\.|\.d\.ts$|supported|unused/.test(entry.name)) yield path
  }
}

function used(): Set<string> {
  const found = new Set<string>()
  for (const file of files(SOURCES)) {
    const source = readFileSync(file, 'utf8')
    for (const [, method, path] of source.matchAll(/client\.(GET|POST|PUT|DELETE)\(\s*'([^']+)'/g))
      found.add(`${method} ${path}`)
    for (const [, path] of source.matchAll(
      /\b(?:useGet|useInfinite\w*|get|usePaged\w*)(?:<[^>]*>)?\(\s*'(\/[^']+)'/g,
    ))
      found.add(`GET ${path}`)
    for (const [, path = ''] of source.matchAll(/\bresource\(\s*'(\/[^']+)'/g)) {
      const list = path.slice(0, path.lastIndexOf('/'))
      for (const operation of [`GET ${list}`, `POST ${list}`, ...OF_ONE.map((each) => `${each} ${path}`)])
        found.add(operation)
    }
    for (const [, path] of source.matchAll(/'\/api\/v1(\/[^'?]+)/g)) found.add(`GET ${path}`)
  }
  return found
}

it('uses every operation, or says why not', () => {
  const known = used()
  const missing = [...supported]
    // The list has the parameters of operations too.
    .filter((operation) => !operation.includes('?'))
    .filter((operation) => !known.has(operation) && !(operation in unused))
  expect(missing).toEqual([])
})

it('lists no operation that is used or gone', () => {
  const known = used()
  expect(
    Object.keys(unused).filter((operation) => known.has(operation) || !supported.has(operation)),
  ).toEqual([])
})

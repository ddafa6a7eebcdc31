// Generates the types of the REST API, and the list of the operations that this version supports, from its OpenAPI
// document.

import { readFileSync, writeFileSync, existsSync } from 'node:fs'
import openapiTS, { astToString } from 'openapi-typescript'

const source = new URL('../../gateway-api/openapi.json', import.meta.url)
const folder = new URL('../src/api/', import.meta.url)
const document = JSON.parse(readFileSync(source, 'utf8'))

/** Writes a file unless it holds this text already, so that nothing that depends on it is built again. */
function write(name, text) {
  const file = new URL(name, folder)
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
}

const types = astToString(await openapiTS(document))
write('schema.d.ts', `// Generated from gateway-api/openapi.json.\n\n${types}`)

const supported = []
for (const [path, operations] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    // An operation that this version lacks has no successful response.
    if (!Object.keys(operation.responses ?? {}).some((code) => code.startsWith('2'))) continue
    const name = `${method.toUpperCase()} ${path}`
    supported.push(name)
    const queries = (operation.parameters ?? [])
      .filter((each) => each.in === 'query')
      .map((each) => each.name)
    // A collection has a filter for each field; they are not listed.
    if (!queries.includes('created_at')) supported.push(...queries.map((query) => `${name}?${query}`))
  }
}
write(
  'supported.ts',
  `// Generated from gateway-api/openapi.json.\n\nexport const supported: ReadonlySet<string> = new Set(${JSON.stringify(supported.sort(), null, 2)})\n`,
)

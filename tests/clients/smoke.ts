// Calls the gateway by openapi-fetch, with the types that openapi-typescript has made of its document.

import createClient from 'openapi-fetch'
import type { paths } from './schema.js'

const client = createClient<paths>({ baseUrl: `${process.argv[2]}/api/v1` })

function check(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(JSON.stringify(what))
}

const body = { name: 'tablet', mac: '02:00:00:00:00:0b' }
const made = await client.POST('/devices', { body })
check(made.response.status === 201, made.error)
const device = made.data?.data
check(device?.name === 'tablet' && device.mac === '02:00:00:00:00:0b', device)
const id = device.id
check(id !== undefined, device)
const item = { params: { path: { id } } }

const found = await client.GET('/devices/{id}', item)
check(found.data?.data.id === id, found.error)
const changed = await client.PUT('/devices/{id}', { ...item, body: { ...body, notes: 'spare' } })
check(changed.data?.data.notes === 'spare', changed.error)
const list = await client.GET('/devices')
check(list.data?.data.some((each) => each.id === id) === true, list.error)
const again = await client.POST('/devices', { body: { ...body, name: 'other' } })
check(again.error?.error.code === 'conflict', again)
const policy = await client.POST('/routing/policies', {
  body: { name: 'quiet', source_type: 'device', source_value: id, hops: [], fail_policy: 'fail-closed' },
})
check(policy.data?.data.fail_policy === 'fail-closed', policy.error)
const setting = await client.GET('/settings/{key}', { params: { path: { key: 'log.level' } } })
check(setting.data?.data.apply === 'live', setting.error)
const policyId = policy.data?.data.id ?? ''
const freed = await client.DELETE('/routing/policies/{id}', { params: { path: { id: policyId } } })
check(freed.data?.data.deleted === true, freed.error)
const gone = await client.DELETE('/devices/{id}', item)
check(gone.data?.data.deleted === true, gone.error)
const missing = await client.GET('/devices/{id}', item)
check(missing.error?.error.code === 'not_found', missing.error)
console.log('ok')

import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Schemas } from '@/api/client'
import { CallerProvider } from '@/session/caller'
import { FieldList } from './form-fields'
import { deletionOf, resource, useObjectEdit, type Stored } from './resource'

const chains = resource('/chains/{id}', {
  key: 'chain',
  type: 'chain',
  blank: { name: '', hops: [], enabled: true },
})
const blocks = resource('/dns/blocklist/{domain}', {
  key: 'block',
  id: (row) => row.id,
  name: (row) => row.domain ?? '-',
  fields: (row) => ({ domain: row?.domain ?? '', size: '1' }),
  body: ({ domain, size }) => ({ domain, size: Number(size) }),
})

const chain = { id: 'c1', name: 'far', hops: [], enabled: false, status: 'up' } as unknown as Schemas['Chain']

let requests: { method: string; path: string; tag: string | null; body: unknown }[]

beforeEach(() => {
  sessionStorage.clear()
  requests = []
  vi.stubGlobal('fetch', async (request: Request) => {
    const { method, url, headers } = request
    const { pathname, search } = new URL(url)
    const body = method === 'PUT' || method === 'POST' ? await request.clone().json() : null
    if (pathname !== '/api/v1/auth/status')
      requests.push({ method, path: pathname.slice(7) + search, tag: headers.get('If-Match'), body })
    const answer = { data: { ...chain, id: 'made' } }
    return new Response(JSON.stringify(answer), {
      headers: { 'Content-Type': 'application/json', ETag: '"2"' },
    })
  })
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

describe('a kind of object', () => {
  it('has the fields of its blank form', () => {
    expect(chains.fields(null)).toEqual({ name: '', hops: [], enabled: true })
    expect(chains.fields(chain)).toEqual({ name: 'far', hops: [], enabled: false })
  })
  it('saves an object over the version that was read', async () => {
    await chains.save({ name: 'near', hops: [], enabled: true }, chain, '"1"')
    expect(requests).toEqual([
      { method: 'PUT', path: '/chains/c1', tag: '"1"', body: { name: 'near', hops: [], enabled: true } },
    ])
  })
  it('creates an object on the list', async () => {
    await blocks.save({ domain: 'ads.example', size: '7' }, null, null)
    expect(requests).toEqual([
      { method: 'POST', path: '/dns/blocklist', tag: null, body: { domain: 'ads.example', size: 7 } },
    ])
  })
  it('removes an object by what its path has, and only if that is wanted although others use it', async () => {
    const words = { title: (name: string) => `Delete ${name}`, consequence: '', back: '/' }
    expect(deletionOf(chains, undefined, words)).toBeNull()
    const deletion = deletionOf(chains, chain, words)
    expect(deletion).toMatchObject({
      name: 'far',
      title: 'Delete far',
      subject: { type: 'chain', id: 'c1' },
      draft: 'chain.c1',
    })
    await deletion?.remove(false)
    await deletion?.remove(true)
    expect(requests.map((each) => each.path)).toEqual(['/chains/c1', '/chains/c1?force=true'])
  })
})

function Editor({ stored, onSaved }: { stored: Stored<Schemas['Chain']> | null; onSaved?: () => void }) {
  const edit = useObjectEdit(chains, stored, { onSaved })
  return (
    <>
      <FieldList
        draft={edit.draft}
        error={edit.of}
        fields={[
          { field: 'name', label: 'Name' },
          { field: 'enabled', kind: 'check', label: 'Enabled' },
        ]}
      />
      <button onClick={edit.submit}>send</button>
    </>
  )
}

function show(stored: Stored<Schemas['Chain']> | null, onSaved?: () => void) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  render(
    <QueryClientProvider client={queries}>
      <CallerProvider>
        <Editor stored={stored} onSaved={onSaved} />
      </CallerProvider>
    </QueryClientProvider>,
  )
}

describe('the form of an object', () => {
  it('keeps a draft of what is typed, and sends it with the tag of the version', async () => {
    const saved = vi.fn()
    show({ data: chain, etag: '"1"' }, saved)
    fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'near' } })
    fireEvent.click(screen.getByLabelText('Enabled'))
    expect(sessionStorage.getItem('gateway.draft.chain.c1')).toContain('near')
    await act(async () => fireEvent.click(screen.getByText('send')))
    await waitFor(() => expect(saved).toHaveBeenCalled())
    expect(requests[0]).toEqual({
      method: 'PUT',
      path: '/chains/c1',
      tag: '"1"',
      body: { name: 'near', hops: [], enabled: true },
    })
    expect(sessionStorage.getItem('gateway.draft.chain.c1')).toBeNull()
  })
  it('creates an object if none is stored', async () => {
    show(null)
    fireEvent.change(screen.getByLabelText('Name'), { target: { value: 'first' } })
    await act(async () => fireEvent.click(screen.getByText('send')))
    await waitFor(() => expect(requests[0]?.method).toBe('POST'))
    expect(requests[0]?.body).toEqual({ name: 'first', hops: [], enabled: true })
  })
})

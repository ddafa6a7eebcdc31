import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiError, type Answer } from '@/api/client'
import { CallerProvider } from '@/session/caller'
import { revisionOf, useEdit } from './edit'

type Form = { name: string; note: string; password: string }

const form = (name: string, note = ''): Form => ({ name, note, password: '' })
const answer = (etag: string): Answer<unknown> => ({ data: {}, warnings: [], etag, headers: new Headers() })
const refused = (status: number) => new ApiError(status, 'refused', 'refused', [], null, {})

interface Props {
  version: { value: Form; etag: string | null }
  save: (value: Form, etag: string | null) => Promise<Answer<unknown>>
  read?: () => Promise<{ value: Form; etag: string | null }>
}

function Editor({ version, save, read }: Props) {
  const edit = useEdit<Form>({ key: 'thing', version, secrets: ['password'], save, read })
  return (
    <>
      {(['name', 'note', 'password'] as const).map((field) => (
        <input
          key={field}
          aria-label={field}
          value={edit.draft.value[field]}
          onChange={(event) => edit.draft.set(field, event.target.value)}
        />
      ))}
      <p>{edit.draft.dirty ? 'dirty' : 'clean'}</p>
      <p>{edit.error ? `error ${edit.problems?.status ?? ''}` : 'no error'}</p>
      <button onClick={edit.submit}>send</button>
      <button onClick={edit.forget}>forget</button>
      {edit.dialog}
    </>
  )
}

function show(props: Props) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  const tree = (shown: Props) => (
    <QueryClientProvider client={queries}>
      <CallerProvider>
        <Editor {...shown} />
      </CallerProvider>
    </QueryClientProvider>
  )
  const view = render(tree(props))
  return { again: (changed: Partial<Props>) => view.rerender(tree({ ...props, ...changed })), ...view }
}

const input = (field: keyof Form) => screen.getByLabelText<HTMLInputElement>(field)
const type = (field: keyof Form, value: string) => fireEvent.change(input(field), { target: { value } })
const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }))
const stored = () => sessionStorage.getItem('gateway.draft.thing')

beforeAll(() => {
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function () {
    this.open = false
  }
})
beforeEach(() => {
  sessionStorage.clear()
  vi.stubGlobal(
    'fetch',
    async () => new Response('{"data":{}}', { headers: { 'Content-Type': 'application/json' } }),
  )
})
afterEach(() => {
  cleanup()
  vi.unstubAllGlobals()
})

describe('the editor of an object', () => {
  it('follows a newer version while nothing is written', () => {
    const { again } = show({ version: { value: form('a'), etag: '"1.aa"' }, save: vi.fn() })
    again({ version: { value: form('b'), etag: '"2.bb"' } })
    expect(input('name').value).toBe('b')
    expect(screen.getByText('clean')).toBeTruthy()
  })

  it('keeps a draft, with its base, when a newer version comes', async () => {
    const save = vi.fn((_: Form, etag: string | null) =>
      etag === '"1"' ? Promise.reject(refused(412)) : Promise.resolve(answer('"3"')),
    )
    const theirs = { value: form('theirs', 'theirs'), etag: '"2"' }
    const { again } = show({
      version: { value: form('a'), etag: '"1"' },
      save,
      read: () => Promise.resolve(theirs),
    })
    type('name', 'mine')
    again({ version: theirs, save, read: () => Promise.resolve(theirs) })
    expect(input('name').value).toBe('mine')
    press('send')
    // The name was changed by both, the note by the other only.
    await screen.findByRole('dialog')
    expect(save).toHaveBeenCalledWith(form('mine'), '"1"')
    expect(screen.getAllByRole('radio')).toHaveLength(2)
    const save2 = screen.getByRole('dialog').querySelector('.btn--pri')
    fireEvent.click(save2 as Element)
    await waitFor(() => expect(save).toHaveBeenLastCalledWith(form('mine', 'theirs'), '"2"'))
    await screen.findByText('clean')
    expect(stored()).toBeNull()
  })

  it('takes the choice of the other', async () => {
    const save = vi.fn((_: Form, etag: string | null) =>
      etag === '"1"' ? Promise.reject(refused(412)) : Promise.resolve(answer('"3"')),
    )
    show({
      version: { value: form('a'), etag: '"1"' },
      save,
      read: () => Promise.resolve({ value: form('theirs'), etag: '"2"' }),
    })
    type('name', 'mine')
    press('send')
    await screen.findByRole('dialog')
    fireEvent.click(screen.getAllByRole('radio')[1] as Element)
    fireEvent.click(screen.getByRole('dialog').querySelector('.btn--pri') as Element)
    await waitFor(() => expect(save).toHaveBeenLastCalledWith(form('theirs'), '"2"'))
  })

  it('says that the object is gone', async () => {
    show({
      version: { value: form('a'), etag: '"1"' },
      save: () => Promise.reject(refused(412)),
      read: () => Promise.reject(refused(404)),
    })
    type('name', 'mine')
    press('send')
    await screen.findByText('error 404')
    expect(input('name').value).toBe('mine')
  })

  it('keeps the draft when the session has ended, and when the page is loaded again', async () => {
    const version = { value: form('a'), etag: '"1"' }
    const view = show({ version, save: () => Promise.reject(refused(401)) })
    type('name', 'mine')
    press('send')
    await screen.findByText('error 401')
    expect(input('name').value).toBe('mine')
    view.unmount()
    const save = vi.fn(() => Promise.resolve(answer('"3"')))
    // Meanwhile another version was stored: the draft still belongs to the first.
    show({ version: { value: form('b'), etag: '"2"' }, save })
    expect(input('name').value).toBe('mine')
    press('send')
    await waitFor(() => expect(save).toHaveBeenCalledWith(form('mine'), '"1"'))
  })

  it('never stores a secret', async () => {
    const save = vi.fn(() => Promise.resolve(answer('"2"')))
    show({ version: { value: form('a'), etag: '"1"' }, save })
    type('name', 'mine')
    type('password', 'hidden')
    expect(stored()).toContain('mine')
    expect(stored()).not.toContain('hidden')
    press('send')
    await waitFor(() => expect(input('password').value).toBe(''))
    expect(save).toHaveBeenCalledWith({ ...form('mine'), password: 'hidden' }, '"1"')
    expect(screen.getByText('clean')).toBeTruthy()
  })

  it('takes what the gateway made of it after a save', async () => {
    const { again } = show({
      version: { value: form('a'), etag: '"1.x"' },
      save: () => Promise.resolve(answer('"2.y"')),
    })
    type('name', 'MINE')
    press('send')
    await screen.findByText('clean')
    expect(input('name').value).toBe('MINE')
    act(() => again({ version: { value: form('mine'), etag: '"2.y"' } }))
    expect(input('name').value).toBe('mine')
  })

  it('drops a draft', () => {
    show({ version: { value: form('a'), etag: '"1"' }, save: vi.fn() })
    type('name', 'mine')
    press('forget')
    expect(input('name').value).toBe('a')
    expect(stored()).toBeNull()
  })
})

it('reads the revision of an entity tag', () => {
  expect(revisionOf('"28.8964e91ab76284be"')).toBe(28)
  expect(revisionOf('W/"7"')).toBe(7)
  expect(revisionOf(null)).toBe(-1)
})

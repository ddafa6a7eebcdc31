import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, it } from 'vitest'
import { useState } from 'react'
import { FieldList, partOf } from './form-fields'

type Form = {
  name: string
  level: number
  mtu: number | null
  typed: string
  upstreams: string[]
  soa: { refresh: number; mname: string | null }
  token: string | null
}

const FORM: Form = {
  name: 'a',
  level: 5,
  mtu: 1400,
  typed: '5',
  upstreams: ['9.9.9.9'],
  soa: { refresh: 60, mname: 'ns' },
  token: '',
}

function Fields() {
  const [form, setForm] = useState(FORM)
  const draft = {
    value: form,
    set: <K extends keyof Form>(field: K, next: Form[K]) =>
      setForm((before) => ({ ...before, [field]: next })),
  }
  return (
    <>
      <output>{JSON.stringify(form)}</output>
      <FieldList
        draft={draft}
        error={(path) => (path === 'level' ? 'too high' : undefined)}
        fields={[
          { field: 'name', label: 'Name' },
          { field: 'level', kind: 'number', label: 'Level' },
          { field: 'mtu', kind: 'number', nullable: true, label: 'MTU' },
          { field: 'typed', kind: 'number', label: 'Typed' },
          { field: 'upstreams', kind: 'lines', label: 'Upstreams' },
          { field: 'token', kind: 'secret', stored: true, label: 'Token' },
          false,
        ]}
      />
      <FieldList
        draft={partOf(draft, 'soa')}
        error={() => undefined}
        fields={[
          { field: 'refresh', kind: 'number', label: 'Refresh' },
          { field: 'mname', nullable: true, label: 'Server' },
        ]}
      />
    </>
  )
}

const value = () => JSON.parse(screen.getByRole('status').textContent ?? '') as Form
const type = (label: string, typed: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value: typed } })

afterEach(cleanup)

it('keeps numbers as numbers, and typed numbers as they are typed', () => {
  render(<Fields />)
  type('Level', '7')
  type('Typed', '7')
  expect(value()).toMatchObject({ level: 7, typed: '7' })
})

it('makes an empty field null where that is allowed', () => {
  render(<Fields />)
  type('MTU', '')
  type('Server', '')
  type('Name', '')
  expect(value()).toMatchObject({ mtu: null, name: '', soa: { mname: null, refresh: 60 } })
})

it('reads a list from lines, and leaves an unfinished line as it is', () => {
  render(<Fields />)
  type('Upstreams', '9.9.9.9\n1.1.1.1\n')
  expect(value().upstreams).toEqual(['9.9.9.9', '1.1.1.1'])
  expect(screen.getByLabelText<HTMLTextAreaElement>('Upstreams').value).toBe('9.9.9.9\n1.1.1.1\n')
})

it('says what is wrong beside the field', () => {
  render(<Fields />)
  const field = screen.getByLabelText('Level')
  expect(field.getAttribute('aria-invalid')).toBe('true')
  expect(screen.getByText('too high').id).toBe(field.getAttribute('aria-describedby'))
})

it('removes a stored secret by null, and keeps it while the field is empty', () => {
  render(<Fields />)
  expect(value().token).toBe('')
  type('Token', 'tk_1')
  expect(value().token).toBe('tk_1')
  const remove = screen.getByRole('checkbox')
  fireEvent.click(remove)
  expect(value().token).toBeNull()
  expect((screen.getByLabelText('Token') as HTMLInputElement).disabled).toBe(true)
  fireEvent.click(remove)
  expect(value().token).toBe('')
})

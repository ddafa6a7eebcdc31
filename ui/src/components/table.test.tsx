import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, describe, expect, it } from 'vitest'
import { DataTable } from './data-table'
import { Table, type Column } from './table'

interface Row {
  id: string
  name: string
  size: number | null
}

const ROWS: Row[] = [
  { id: '1', name: 'b', size: 2 },
  { id: '2', name: 'a', size: 10 },
  { id: '3', name: 'c', size: null },
]

const COLUMNS: Column<Row>[] = [
  { head: 'Name', sort: 'name', bare: true, cell: (row) => <b>{row.name}</b> },
  { head: 'Size', sort: 'size', numeric: true },
  { cell: () => <button>x</button> },
]

const names = () => [...document.querySelectorAll('tbody b')].map((each) => each.textContent)

afterEach(cleanup)

describe('a table', () => {
  it('names the cells by their columns, but those that name the row', () => {
    render(<Table label="Things" rows={ROWS} columns={COLUMNS} id={(row) => row.id} />)
    const [name, size, button] = document.querySelectorAll('tbody tr:first-child td')
    expect(name?.getAttribute('data-l')).toBeNull()
    expect(size?.getAttribute('data-l')).toBe('Size')
    expect(size?.className).toBe('num')
    expect(size?.textContent).toBe('2')
    expect(button?.getAttribute('data-l')).toBeNull()
    expect(screen.getByRole('table', { name: 'Things' })).toBeTruthy()
  })
  it('has no heading if no column has one, and can begin its rows with headings', () => {
    render(<Table rows={ROWS} columns={[{ heading: true, cell: (row) => row.name }]} id={(row) => row.id} />)
    expect(document.querySelector('thead')).toBeNull()
    expect(screen.getAllByRole('rowheader').map((each) => each.textContent)).toEqual(['b', 'a', 'c'])
  })
})

describe('a data table', () => {
  it('sorts by a field, first as the column says', () => {
    const columns = COLUMNS.map((column) =>
      column.sort === 'name' ? { ...column, sorted: 'desc' as const } : column,
    )
    render(<DataTable label="Things" rows={ROWS} columns={columns} id={(row) => row.id} />)
    expect(names()).toEqual(['c', 'b', 'a'])
    expect(screen.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('descending')
  })
  it('sorts by a click on a heading that can be sorted', () => {
    render(<DataTable label="Things" rows={ROWS} columns={COLUMNS} id={(row) => row.id} />)
    fireEvent.click(screen.getByRole('button', { name: 'Name' }))
    expect(names()).toEqual(['a', 'b', 'c'])
    expect(screen.getAllByRole('columnheader')).toHaveLength(3)
  })
})

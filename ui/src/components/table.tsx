// The columns of a table, and a table of few rows. Below 760 px the rows are cards; data-l holds the heading of each cell.

import type { ReactNode } from 'react'

export interface Column<T> {
  /** Heading; none above buttons. */
  head?: ReactNode
  /** The content of a cell; the value that sorts the rows if not given. */
  cell?: (row: T, index: number) => ReactNode
  /** A field or a value that sorts the rows of a data table. */
  sort?: (keyof T & string) | ((row: T) => unknown)
  /** The rows are sorted by it at first. */
  sorted?: 'asc' | 'desc'
  /** What is shown when the pointer rests on the cell. */
  title?: (row: T) => string
  numeric?: boolean
  /** Classes of the cells. */
  className?: string
  /** The column is left out below 1180 px. */
  wide?: boolean
  /** Heading of the cell on small screens, if it is not that of the column. */
  label?: string
  /** On small screens the cell has no heading, such as one that names the row. */
  bare?: boolean
  /** The cell is the heading of its row. */
  heading?: boolean
}

interface Props<T> {
  /** What the table lists, for screen readers. */
  label?: string
  rows: readonly T[]
  columns: readonly (Column<T> | false | null | undefined)[]
  id: (row: T, index: number) => string | number
  dense?: boolean
  /** It is no list of cards on small screens. */
  plain?: boolean
  className?: string
  htmlId?: string
  caption?: ReactNode
  rowClass?: (row: T) => string | undefined
}

export function Table<T>(props: Props<T>) {
  const { label, rows, columns, id, dense, plain, className, htmlId, caption, rowClass } = props
  const shown = columns.filter((column) => !!column)
  return (
    <table
      id={htmlId}
      className={classes('tbl', !plain && 'tbl--card', dense && 'tbl--dense', className)}
      aria-label={label}
    >
      {shown.some((column) => column.head !== undefined) ? <Headings columns={shown} /> : null}
      <tbody>
        {rows.map((row, index) => (
          <tr key={id(row, index)} className={rowClass?.(row)}>
            {shown.map((column, at) => (
              <Cell key={at} column={column} plain={plain} title={column.title?.(row)}>
                {contentOf(column, row, index)}
              </Cell>
            ))}
          </tr>
        ))}
      </tbody>
      {caption ? <caption className="dim sm">{caption}</caption> : null}
    </table>
  )
}

function Headings<T>({ columns }: { columns: readonly Column<T>[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column, index) => (
          <th key={index} scope="col" className={cellClass(column, false)}>
            {column.head}
          </th>
        ))}
      </tr>
    </thead>
  )
}

interface CellProps<T> {
  column: Column<T>
  plain?: boolean
  title?: string
  children: ReactNode
}

function Cell<T>({ column, plain, title, children }: CellProps<T>) {
  if (column.heading) return <th scope="row">{children}</th>
  return (
    <td className={cellClass(column)} title={title} data-l={plain ? undefined : labelOf(column)}>
      {children}
    </td>
  )
}

export function valueOf<T>({ sort }: Column<T>, row: T): unknown {
  return typeof sort === 'function' ? sort(row) : sort === undefined ? undefined : row[sort]
}

/** A function is called, not made a component: a new one at each render would throw away what is in the cell. */
export function contentOf<T>(column: Column<T>, row: T, index: number): ReactNode {
  if (column.cell) return column.cell(row, index)
  const value = valueOf(column, row)
  return value === null || value === undefined ? null : String(value)
}

/** Heading of a cell on small screens. */
export function labelOf<T>({ head, bare, label }: Column<T>): string | undefined {
  return label ?? (bare || typeof head !== 'string' ? undefined : head)
}

/** Class of a cell, or of the heading of its column. */
export function cellClass<T>(column: Column<T>, inBody = true): string | undefined {
  const { numeric, wide, className } = column
  return classes(numeric && 'num', wide && 'col-wide', inBody && className) || undefined
}

function classes(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ')
}

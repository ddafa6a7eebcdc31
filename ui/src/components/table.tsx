// A table of few rows. Below 760 px the rows are cards; data-l holds the heading of each cell.

import type { ReactNode } from 'react'

export interface Column<T> {
  /** Heading; none above buttons. */
  head?: ReactNode
  cell: (row: T, index: number) => ReactNode
  /** What is shown when the pointer rests on the cell. */
  title?: (row: T) => string
  numeric?: boolean
  /** Classes of the cells. */
  className?: string
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
                {column.cell(row, index)}
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
          <th key={index} scope="col" className={column.numeric ? 'num' : undefined}>
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
  const { head, bare, heading, numeric, className } = column
  if (heading) return <th scope="row">{children}</th>
  return (
    <td
      className={classes(numeric && 'num', className) || undefined}
      title={title}
      data-l={plain || bare || typeof head !== 'string' ? undefined : head}
    >
      {children}
    </td>
  )
}

function classes(...names: (string | false | undefined)[]): string {
  return names.filter(Boolean).join(' ')
}

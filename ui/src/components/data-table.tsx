// A table of many rows: sorted by a click on a heading, and only the rows in view are drawn. Below 760 px the rows are
// cards; data-l holds the heading of each cell.

import {
  flexRender,
  getCoreRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type Row,
  type SortingState,
} from '@tanstack/react-table'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Icon } from './icons'

export type { ColumnDef } from '@tanstack/react-table'

/** What a column adds to its cells. */
export interface ColumnMeta {
  numeric?: boolean
  /** Heading of the cell on small screens; the heading of the column if not given, nothing if empty. */
  label?: string
  /** The column is left out below 1180 px. */
  wide?: boolean
}

interface Props<T> {
  /** What the table lists, for screen readers. */
  label: string
  rows: T[]
  // A column of any type of cell.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  columns: ColumnDef<T, any>[]
  id: (row: T) => string
  /** Opens a row: by a click, or by Enter. */
  open?: (row: T) => void
  dense?: boolean
  /** Below the row while it is selected. */
  detail?: (row: T) => ReactNode
  selected?: string | null
  sorting?: SortingState
  className?: string
}

/** Rows from which only those in view are drawn. */
const MANY = 100

export function DataTable<T>(props: Props<T>) {
  const { label, rows, columns, id, dense = false, className = '' } = props
  const [sorting, setSorting] = useState<SortingState>(props.sorting ?? [])
  // The compiler of React leaves this component out: the table has functions that change.
  // eslint-disable-next-line react-hooks/incompatible-library
  const table = useReactTable({
    data: rows,
    columns,
    state: { sorting },
    onSortingChange: setSorting,
    getRowId: id,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  })
  const sorted = table.getRowModel().rows
  return (
    <div className="scrollx">
      <table
        className={`tbl tbl--card ${dense ? 'tbl--dense' : ''} ${className}`}
        aria-label={label}
        aria-rowcount={rows.length}
      >
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const direction = header.column.getIsSorted()
                const meta = header.column.columnDef.meta as ColumnMeta | undefined
                return (
                  <th
                    key={header.id}
                    scope="col"
                    className={classOf(meta)}
                    aria-sort={
                      direction === 'asc' ? 'ascending' : direction === 'desc' ? 'descending' : undefined
                    }
                  >
                    {header.column.getCanSort() && header.column.columnDef.header ? (
                      <button
                        type="button"
                        className="sort"
                        onClick={header.column.getToggleSortingHandler()}
                      >
                        {flexRender(header.column.columnDef.header, header.getContext())}
                        {direction ? <Icon name={direction === 'asc' ? 'up' : 'down'} /> : null}
                      </button>
                    ) : (
                      flexRender(header.column.columnDef.header, header.getContext())
                    )}
                  </th>
                )
              })}
            </tr>
          ))}
        </thead>
        {sorted.length > MANY ? <Window {...props} sorted={sorted} /> : <Body {...props} sorted={sorted} />}
      </table>
    </div>
  )
}

interface BodyProps<T> extends Props<T> {
  sorted: Row<T>[]
}

function Body<T>(props: BodyProps<T>) {
  return (
    <tbody>
      {props.sorted.map((row, index) => (
        <Line key={row.id} row={row} index={index} {...props} />
      ))}
    </tbody>
  )
}

/** The rows in view, between two rows that are as high as those that are left out. */
function Window<T>(props: BodyProps<T>) {
  const { sorted, columns, dense = false } = props
  const body = useRef<HTMLTableSectionElement>(null)
  const [top, setTop] = useState(0)
  const virtual = useWindowVirtualizer({
    count: sorted.length,
    estimateSize: () => (dense ? 32 : 52),
    overscan: 12,
    scrollMargin: top,
    getItemKey: (index) => sorted[index]?.id ?? index,
  })
  const items = virtual.getVirtualItems()
  const first = items[0]
  const last = items[items.length - 1]
  const before = first ? first.start - top : 0
  const after = last ? virtual.getTotalSize() - (last.end - top) : 0
  return (
    <tbody
      ref={(element) => {
        body.current = element
        const offset = element ? Math.round(element.getBoundingClientRect().top + window.scrollY) : top
        if (offset !== top) setTop(offset)
      }}
    >
      {before > 0 ? <Gap height={before} columns={columns.length} /> : null}
      {items.map((item) => {
        const row = sorted[item.index]
        return row ? (
          <Line key={row.id} row={row} index={item.index} measure={virtual.measureElement} {...props} />
        ) : null
      })}
      {after > 0 ? <Gap height={after} columns={columns.length} /> : null}
    </tbody>
  )
}

function Gap({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={columns} style={{ height }} />
    </tr>
  )
}

interface LineProps<T> extends Props<T> {
  row: Row<T>
  index: number
  measure?: (element: HTMLElement | null) => void
}

function Line<T>({ row, index, open, measure, detail, selected, columns }: LineProps<T>) {
  const isSelected = selected === row.id
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && event.target === event.currentTarget) open?.(row.original)
  }
  return (
    <>
      <tr
        ref={measure}
        data-index={index}
        aria-rowindex={index + 2}
        className={isSelected ? 'is-sel' : open ? 'opens' : undefined}
        tabIndex={open ? 0 : undefined}
        onKeyDown={open ? press : undefined}
        onClick={
          open
            ? (event) => {
                if (!(event.target as HTMLElement).closest('a, button, input, select, label'))
                  open(row.original)
              }
            : undefined
        }
      >
        {row.getVisibleCells().map((cell) => {
          const meta = cell.column.columnDef.meta as ColumnMeta | undefined
          const heading = cell.column.columnDef.header
          const name = meta?.label ?? (typeof heading === 'string' ? heading : undefined)
          return (
            <td key={cell.id} className={classOf(meta)} data-l={name === '' ? undefined : name}>
              {contentOf(cell.column.columnDef.cell, cell.getContext())}
            </td>
          )
        })}
      </tr>
      {isSelected && detail ? (
        <tr className="det">
          <td colSpan={columns.length}>{detail(row.original)}</td>
        </tr>
      ) : null}
    </>
  )
}

/**
 * The content of a cell. A function is called, not made a component: a new one at each render would throw away what is
 * in the cell, and with it an open menu or the focus.
 */
function contentOf<C>(cell: unknown, context: C): ReactNode {
  return typeof cell === 'function' ? (cell as (context: C) => ReactNode)(context) : (cell as ReactNode)
}

function classOf(meta: ColumnMeta | undefined): string | undefined {
  return [meta?.numeric ? 'num' : '', meta?.wide ? 'col-wide' : ''].filter(Boolean).join(' ') || undefined
}

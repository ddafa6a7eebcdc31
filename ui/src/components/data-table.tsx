// A table of many rows: sorted by a click on a heading, and only the rows in view are drawn. Below 760 px the rows are
// cards; data-l holds the heading of each cell.

import {
  getCoreRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type Header,
  type Row,
  type SortingState,
} from '@tanstack/react-table'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { Icon } from './icons'
import { cellClass, contentOf, labelOf, valueOf, type Column } from './table'

interface Props<T> {
  /** What the table lists, for screen readers. */
  label: string
  rows: T[]
  columns: readonly Column<T>[]
  id: (row: T) => string
  /** Opens a row: by a click, or by Enter. */
  open?: (row: T) => void
  dense?: boolean
  /** Below the row while it is selected. */
  detail?: (row: T) => ReactNode
  selected?: string | null
  className?: string
}

/** Rows from which only those in view are drawn. */
const MANY = 100

export function DataTable<T>(props: Props<T>) {
  const { label, rows, columns, id, dense = false, className = '' } = props
  const [sorting, setSorting] = useState<SortingState>(() => startOf(columns))
  const defined = useMemo(() => columns.map(definitionOf), [columns])
  // The compiler of React leaves this component out: the table has functions that change.
  // eslint-disable-next-line react-hooks/incompatible-library
  const table = useReactTable({
    data: rows,
    columns: defined,
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
          <tr>
            {table.getFlatHeaders().map((header, index) => {
              const column = columns[index]
              return column ? <Heading key={header.id} header={header} column={column} /> : null
            })}
          </tr>
        </thead>
        {sorted.length > MANY ? <Window {...props} sorted={sorted} /> : <Body {...props} sorted={sorted} />}
      </table>
    </div>
  )
}

/** The column as the library wants it: it only sorts. */
function definitionOf<T>(column: Column<T>, index: number): ColumnDef<T> {
  const id = String(index)
  return column.sort === undefined ? { id } : { id, accessorFn: (row) => valueOf(column, row) }
}

function startOf<T>(columns: readonly Column<T>[]): SortingState {
  const index = columns.findIndex((column) => column.sorted)
  return index < 0 ? [] : [{ id: String(index), desc: columns[index]?.sorted === 'desc' }]
}

const ORDER = { asc: 'ascending', desc: 'descending' } as const

function Heading<T>({ header, column }: { header: Header<T, unknown>; column: Column<T> }) {
  const direction = header.column.getIsSorted()
  return (
    <th scope="col" className={cellClass(column, false)} aria-sort={direction ? ORDER[direction] : undefined}>
      {header.column.getCanSort() && column.head ? (
        <button type="button" className="sort" onClick={header.column.getToggleSortingHandler()}>
          {column.head}
          {direction ? <Icon name={direction === 'asc' ? 'up' : 'down'} /> : null}
        </button>
      ) : (
        column.head
      )}
    </th>
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
        {columns.map((column, at) => (
          <td key={at} className={cellClass(column)} data-l={labelOf(column)}>
            {contentOf(column, row.original, index)}
          </td>
        ))}
      </tr>
      {isSelected && detail ? (
        <tr className="det">
          <td colSpan={columns.length}>{detail(row.original)}</td>
        </tr>
      ) : null}
    </>
  )
}

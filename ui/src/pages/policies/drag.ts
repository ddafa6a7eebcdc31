// Dragging rows by their grips, with the mouse, a pen or a finger.

import { useEffect, useRef, useState, type PointerEvent, type RefObject } from 'react'

export interface Drag {
  /** The row that is dragged. */
  id: string
  /** Index of the row before which it would be put; the number of rows is the end. */
  at: number
}

/** Index of the first row whose middle is below a height; the number of rows if none is. */
export function dropIndex(rows: readonly { top: number; height: number }[], y: number): number {
  const found = rows.findIndex((row) => y < row.top + row.height / 2)
  return found < 0 ? rows.length : found
}

/**
 * Returns the drag in progress, and what a grip needs to start one. Rows are the elements with `data-row` inside the
 * list. Escape gives up.
 */
export function useDrag(list: RefObject<HTMLElement | null>, onDrop: (id: string, at: number) => void) {
  const [drag, setDrag] = useState<Drag | null>(null)
  const current = useRef<Drag | null>(null)
  const set = (next: Drag | null) => {
    current.current = next
    setDrag(next)
  }
  const active = drag !== null
  useEffect(() => {
    if (!active) return
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return
      event.preventDefault()
      current.current = null
      setDrag(null)
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [active])
  const index = (event: PointerEvent) => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])]
    return dropIndex(
      rows.map((row) => row.getBoundingClientRect()),
      event.clientY,
    )
  }
  const grip = (id: string) => ({
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return
      event.preventDefault()
      event.currentTarget.setPointerCapture(event.pointerId)
      set({ id, at: index(event) })
    },
    onPointerMove: (event: PointerEvent) => {
      if (current.current?.id === id) set({ id, at: index(event) })
    },
    onPointerUp: () => {
      const done = current.current
      set(null)
      if (done?.id === id) onDrop(id, done.at)
    },
    onPointerCancel: () => set(null),
  })
  return { drag, grip }
}

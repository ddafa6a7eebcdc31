import { useEffect, useState } from 'react'

/** A value that is written is passed on once it rests. */
export function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), 400)
    return () => window.clearTimeout(timer)
  }, [value])
  return settled
}

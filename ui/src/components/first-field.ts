// The focus of a form that opens in a page.

import { useEffect, useRef, type RefObject } from 'react'

/** A form with this reference has the focus in its first field when it appears. */
export function useFirstField(): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    form.current?.querySelector<HTMLElement>(':is(input, select, textarea):not(:disabled)')?.focus()
  }, [])
  return form
}

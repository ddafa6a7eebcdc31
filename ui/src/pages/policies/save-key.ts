import { useEffect, type RefObject } from 'react'

/** Ctrl+Enter sends the form, wherever the focus is in it. */
export function useSaveKey(form: RefObject<HTMLFormElement | null>) {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
      if (!form.current?.contains(event.target as Node)) return
      event.preventDefault()
      form.current.requestSubmit()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [form])
}

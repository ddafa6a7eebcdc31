// Links to pages. Addresses come from data and from the entries, so they are plain text.

import { Link as RouterLink, useNavigate, useLocation } from '@tanstack/react-router'
import type { ComponentPropsWithoutRef, ReactNode } from 'react'

interface Props extends Omit<ComponentPropsWithoutRef<'a'>, 'href'> {
  to: string
  search?: Record<string, unknown>
  children: ReactNode
}

export function Link({ to, search, children, ...rest }: Props) {
  return (
    <RouterLink
      {...(rest as object)}
      to={to as never}
      search={(search ?? {}) as never}
      // Only the link to this very address is current, not those to the pages above it or to other tabs of this one.
      activeOptions={{ exact: true, includeSearch: true }}
    >
      {children}
    </RouterLink>
  )
}

/** Goes to an address. */
export function useGo() {
  const navigate = useNavigate()
  return (to: string, search: Record<string, unknown> = {}) =>
    void navigate({ to: to as never, search: search as never })
}

export function usePath(): string {
  return useLocation({ select: (location) => location.pathname })
}

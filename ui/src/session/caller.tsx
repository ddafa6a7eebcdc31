// The caller: who is signed in, with what role, and whether sign-in is on at all.

import { createContext, useContext, useEffect, type ReactNode } from 'react'
import type { UseQueryResult } from '@tanstack/react-query'
import type { Answer, Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { session } from '@/api/session'
import type { Role } from './roles'

export interface Caller {
  query: UseQueryResult<Answer<Schemas['Status']>>
  status: Schemas['Status'] | undefined
  role: Role | null
}

const Context = createContext<Caller | null>(null)

/** Reads the status of sign-in and gives it to the parts inside it. */
export function CallerProvider({ children }: { children: ReactNode }) {
  const query = useGet('/auth/status', {}, { every: 60_000 })
  const status = query.data?.data
  useEffect(() => {
    if (status) session.csrf = status.csrf_token ?? null
  }, [status])
  return <Context.Provider value={{ query, status, role: status?.role ?? null }}>{children}</Context.Provider>
}

export function useCaller(): Caller {
  const caller = useContext(Context)
  if (!caller) throw new Error('there is no CallerProvider')
  return caller
}

// The current paths of devices, for a list.

import { useQueries, useQuery } from '@tanstack/react-query'
import { useEffect, useState, type RefObject } from 'react'
import { evaluate, rowQuery, usePathStamp } from '@/components/why/evaluate'

/** Devices whose path is asked for while a filter needs it. */
export const MOST_ASKED = 200

/** Decisions of the first devices, by id. Those that have not arrived are missing. */
export function useDecisions(ids: readonly string[], enabled: boolean) {
  const stamp = usePathStamp()
  return useQueries({
    queries: enabled ? ids.slice(0, MOST_ASKED).map((id) => rowQuery(id, stamp)) : [],
    combine: (results) => ({
      pending: results.filter((result) => result.isPending).length,
      decisions: new Map(
        results.flatMap((result) =>
          result.data?.data.device.id
            ? [[result.data.data.device.id, result.data.data.decision as string] as const]
            : [],
        ),
      ),
    }),
  })
}

/** The path of one device, asked for while its row is in view. */
export function usePath(id: string, inView: boolean) {
  const stamp = usePathStamp()
  return useQuery({
    ...rowQuery(id, stamp),
    queryFn: () => evaluate({ device_id: id }),
    enabled: inView,
    placeholderData: (before, old) => (old?.queryKey[2] === id ? before : undefined),
  })
}

/** Reports whether an element has been in view. */
export function useInView(element: RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false)
  useEffect(() => {
    const target = element.current
    if (!target) return
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some((entry) => entry.isIntersecting)),
      {
        rootMargin: '100px',
      },
    )
    observer.observe(target)
    return () => observer.disconnect()
  }, [element])
  return seen
}

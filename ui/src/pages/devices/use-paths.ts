// The current path of each device, for the list.

import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { Schemas } from '@/api/client'
import { live } from '@/api/live'
import { get } from '@/api/query'

export type DevicePath = Schemas['DevicePath']

/** Devices of one page; the most that the daemon returns. */
const PAGE = 1000

/** Reads the paths of all devices, page by page. */
export async function readPaths(
  page: (after: string | undefined) => Promise<readonly DevicePath[]>,
  size: number,
): Promise<DevicePath[]> {
  const all: DevicePath[] = []
  for (;;) {
    const read = await page(all.at(-1)?.device_id)
    all.push(...read)
    if (read.length < size) return all
  }
}

/** The path of each device, by its id. */
export function usePaths() {
  const query = useQuery({
    queryKey: ['/policy/paths', 'all'],
    queryFn: ({ signal }) =>
      readPaths(
        async (after) =>
          (await get('/policy/paths', { query: { limit: PAGE, ...(after ? { after } : {}) } }, signal)).data,
        PAGE,
      ),
    // An event makes it read at once; many devices are not evaluated again more often than that.
    refetchInterval: ({ state }) =>
      live.pause((state.data?.length ?? 0) < PAGE ? 15_000 : 60_000, state.fetchFailureCount),
  })
  const byId = useMemo(() => new Map((query.data ?? []).map((path) => [path.device_id, path])), [query.data])
  return { byId, list: query.data, pending: query.isPending, error: query.error }
}

import { useGet } from '@/api/query'
import type { Entry } from '@/components/entries'

export const paths: Entry = {
  path: '/paths',
  icon: 'paths',
  shortcut: 't',
  label: (text) => text.paths.label,
  question: (text) => text.paths.question,
  tabs: [
    {
      path: '',
      label: (text) => text.paths.tabs.tunnels,
      useCount: () => useGet('/tunnels', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /tunnels'],
      page: () => import('./tunnels'),
    },
    {
      path: 'bridges',
      label: (text) => text.paths.tabs.bridges,
      useCount: () => useGet('/bridges', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /bridges', 'GET /bridges/status'],
      page: () => import('./bridges'),
    },
    {
      path: 'proxies',
      label: (text) => text.paths.tabs.proxies,
      useCount: () => useGet('/proxies', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /proxies'],
      page: () => import('./proxies'),
    },
    {
      path: 'splitting',
      label: (text) => text.paths.tabs.splitting,
      needs: ['GET /splitting/status'],
      page: () => import('./splitting'),
    },
  ],
  details: [
    { path: '/paths/tunnels/new', page: () => import('./tunnel-new') },
    { path: '/paths/tunnels/import', page: () => import('./tunnel-import') },
    { path: '/paths/tunnels/$id', page: () => import('./tunnel') },
    { path: '/paths/bridges/new', page: () => import('./bridge-new') },
    { path: '/paths/bridges/$id', page: () => import('./bridge') },
    { path: '/paths/proxies/new', page: () => import('./proxy-new') },
    { path: '/paths/proxies/$id', page: () => import('./proxy') },
  ],
}

import { useGet } from '@/api/query'
import type { Entry } from '@/components/entries'

export const policies: Entry = {
  path: '/policies',
  icon: 'policies',
  shortcut: 'p',
  label: (text) => text.policies.label,
  question: (text) => text.policies.question,
  tabs: [
    {
      path: '',
      label: (text) => text.policies.tabs.order,
      useCount: () => useGet('/routing/policies', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /routing/policies'],
      page: () => import('./order'),
    },
    {
      path: 'exceptions',
      label: (text) => text.policies.tabs.exceptions,
      useCount: () => useGet('/exceptions/active', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /exceptions'],
      page: () => import('./exceptions'),
    },
    {
      path: 'profiles',
      label: (text) => text.policies.tabs.profiles,
      useCount: () => useGet('/profiles', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /profiles', 'GET /chains'],
      page: () => import('./profiles'),
    },
    {
      path: 'classes',
      label: (text) => text.policies.tabs.classes,
      useCount: () => useGet('/privacy-classes', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /privacy-classes'],
      page: () => import('./classes'),
    },
    {
      path: 'presets',
      label: (text) => text.policies.tabs.presets,
      useCount: () => useGet('/presets', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /presets'],
      page: () => import('./presets'),
    },
    {
      path: 'matrix',
      label: (text) => text.policies.tabs.matrix,
      needs: ['GET /policy/leak-matrix'],
      page: () => import('./matrix'),
    },
    {
      path: 'compiled',
      label: (text) => text.policies.tabs.compiled,
      needs: ['GET /render'],
      page: () => import('./compiled'),
    },
  ],
  details: [
    { path: '/policies/$id', page: () => import('./policy') },
    { path: '/policies/new', page: () => import('./policy') },
    { path: '/policies/profiles/$id', page: () => import('./profile') },
    { path: '/policies/chains/$id', page: () => import('./chain') },
    { path: '/policies/presets/$id', page: () => import('./preset') },
    { path: '/policies/classes/$id', page: () => import('./class') },
  ],
}

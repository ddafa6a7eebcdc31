import { useGet } from '@/api/query'
import type { Entry } from '@/components/entries'
import { useHostCount } from '@/components/hosts/hosts'

export const devices: Entry = {
  path: '/devices',
  icon: 'devices',
  shortcut: 'd',
  label: (text) => text.devices.label,
  question: (text) => text.devices.question,
  tabs: [
    {
      path: '',
      label: (text) => text.devices.tabs.devices,
      useCount: () => useGet('/devices', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /devices'],
      page: () => import('./devices'),
    },
    {
      path: 'hosts',
      label: (text) => text.hosts.tab,
      useCount: () => useHostCount(),
      needs: ['GET /hosts'],
      page: () => import('./hosts'),
    },
    {
      path: 'groups',
      label: (text) => text.devices.tabs.groups,
      useCount: () => useGet('/device-groups', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /device-groups'],
      page: () => import('./groups'),
    },
    {
      path: 'trust-classes',
      label: (text) => text.devices.tabs.trustClasses,
      useCount: () => useGet('/trust-classes', {}, { every: 60_000 }).data?.data.length,
      needs: ['GET /trust-classes'],
      page: () => import('./trust-classes'),
    },
  ],
  details: [
    { path: '/devices/$id', page: () => import('./device') },
    { path: '/devices/hosts/$id', page: () => import('./host') },
    { path: '/devices/groups/$id', page: () => import('./group') },
    { path: '/devices/trust-classes/$id', page: () => import('./trust-class') },
  ],
}

import type { Entry } from '@/components/entries'

export const network: Entry = {
  path: '/network',
  icon: 'network',
  shortcut: 'w',
  label: (text) => text.network.label,
  question: (text) => text.network.uplinks.question,
  tabs: [
    {
      path: '',
      label: (text) => text.network.tabs.uplinks,
      needs: ['GET /system/wan-manager', 'GET /system/wan-uplinks'],
      page: () => import('./uplinks'),
    },
    {
      path: 'interfaces',
      label: (text) => text.network.tabs.interfaces,
      needs: ['GET /interfaces'],
      page: () => import('./interfaces'),
    },
    {
      path: 'dhcp',
      label: (text) => text.network.tabs.dhcp,
      needs: ['GET /dhcp'],
      page: () => import('./dhcp'),
    },
    {
      path: 'segments',
      label: (text) => text.network.tabs.segments,
      needs: ['GET /segments'],
      page: () => import('./segments'),
    },
    {
      path: 'ipv6',
      label: (text) => text.network.tabs.ipv6,
      needs: ['GET /settings'],
      page: () => import('./ipv6'),
    },
    {
      path: 'mesh',
      label: (text) => text.mesh.tab,
      needs: ['GET /mesh/status', 'GET /mesh/peers'],
      page: () => import('./mesh/mesh'),
    },
    {
      path: 'bluetooth',
      label: (text) => text.bluetooth.tab,
      needs: ['GET /bluetooth/status'],
      page: () => import('./bluetooth/bluetooth'),
    },
  ],
  details: [
    { path: '/network/uplinks/edit', page: () => import('./uplinks-edit') },
    { path: '/network/interfaces/$name', page: () => import('./interface') },
    { path: '/network/dhcp/new', page: () => import('./reservation-new') },
    { path: '/network/dhcp/$mac', page: () => import('./reservation') },
    { path: '/network/segments/new', page: () => import('./segment-new') },
    { path: '/network/segments/$id', page: () => import('./segment') },
  ],
}

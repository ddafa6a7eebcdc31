import type { Entry } from '@/components/entries'

export const system: Entry = {
  path: '/system',
  icon: 'system',
  shortcut: 's',
  label: (text) => text.system.label,
  question: (text) => text.system.question,
  tabs: [
    {
      path: '',
      label: (text) => text.system.tabs.accounts,
      needs: ['GET /auth/users', 'GET /auth/keys'],
      page: () => import('./accounts'),
    },
    {
      path: 'settings',
      label: (text) => text.system.tabs.settings,
      needs: ['GET /settings'],
      page: () => import('./settings'),
    },
    {
      path: 'backups',
      label: (text) => text.system.tabs.backups,
      needs: ['GET /backup/status'],
      page: () => import('./backups'),
    },
    {
      path: 'snapshots',
      label: (text) => text.system.tabs.snapshots,
      needs: ['GET /snapshots'],
      page: () => import('./snapshots'),
    },
    {
      path: 'security',
      label: (text) => text.system.tabs.security,
      needs: ['GET /secrets/encryption-status'],
      page: () => import('./security'),
    },
    {
      path: 'storage',
      label: (text) => text.storage.tab,
      needs: ['GET /storage/encrypted'],
      page: () => import('./storage'),
    },
    {
      path: 'federation',
      label: (text) => text.federation.tab,
      needs: ['GET /federation/status', 'GET /federation/peers'],
      page: () => import('./federation/federation'),
    },
    {
      path: 'about',
      label: (text) => text.system.tabs.about,
      needs: ['GET /status'],
      page: () => import('./about'),
    },
  ],
  details: [
    { path: '/system/users/$id', page: () => import('./user') },
    { path: '/system/federation/roles', page: () => import('./federation/roles') },
    { path: '/system/federation/nodes/$id', page: () => import('./federation/node') },
  ],
}

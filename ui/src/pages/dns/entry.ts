import type { Entry } from '@/components/entries'

export const dns: Entry = {
  path: '/dns',
  icon: 'dns',
  shortcut: 'n',
  label: (text) => text.dns.label,
  question: (text) => text.dns.log.question,
  tabs: [
    {
      path: '',
      label: (text) => text.dns.log.label,
      needs: ['GET /dns/log'],
      page: () => import('./log/query-log'),
    },
    {
      path: 'lists',
      label: (text) => text.dns.lists.label,
      needs: ['GET /dns/blocklist'],
      page: () => import('./lists/lists'),
    },
    {
      path: 'zones',
      label: (text) => text.dns.zones.label,
      needs: ['GET /dns/zones'],
      page: () => import('./zones/zones'),
    },
    {
      path: 'upstreams',
      label: (text) => text.dns.upstreams.label,
      needs: ['GET /dns/status'],
      page: () => import('./upstreams/upstreams'),
    },
    {
      path: 'privacy',
      label: (text) => text.dns.privacy.label,
      needs: ['GET /privacy/status'],
      page: () => import('./privacy/privacy'),
    },
  ],
}

import type { Entry } from '@/components/entries'

export const activity: Entry = {
  path: '/activity',
  icon: 'activity',
  shortcut: 'a',
  label: (text) => text.activity.label,
  question: (text) => text.activity.question,
  tabs: [
    {
      path: '',
      label: (text) => text.activity.tabs.audit,
      needs: ['GET /audit'],
      page: () => import('./audit'),
    },
    {
      path: 'drift',
      label: (text) => text.activity.tabs.drift,
      needs: ['GET /drift', 'GET /enforce'],
      page: () => import('./drift'),
    },
    {
      path: 'tests',
      label: (text) => text.activity.tabs.tests,
      needs: ['GET /test-definitions'],
      page: () => import('./tests'),
    },
    {
      path: 'alerts',
      label: (text) => text.activity.tabs.alerts,
      needs: ['GET /alerts', 'GET /alerts/active'],
      page: () => import('./alerts'),
    },
    {
      path: 'alert-rules',
      label: (text) => text.activity.tabs.alertRules,
      // Rules have no effect before the daemon raises alerts.
      needs: ['GET /alerts', 'GET /alerts/active', 'GET /alerts/rules'],
      page: () => import('./alert-rules'),
    },
  ],
  details: [{ path: '/activity/tests/$id', page: () => import('./test') }],
}

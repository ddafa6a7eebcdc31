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
      path: 'flows',
      label: (text) => text.flows.tab,
      needs: ['GET /flows', 'GET /flows/stream'],
      page: () => import('./flows/flows'),
    },
    {
      path: 'traffic',
      label: (text) => text.flows.traffic.tab,
      needs: ['GET /flows/usage', 'GET /flows/top'],
      page: () => import('./flows/traffic'),
    },
    {
      path: 'anomalies',
      label: (text) => text.anomalies.tab,
      needs: ['GET /anomalies', 'GET /anomalies/stats'],
      page: () => import('./anomalies'),
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
    {
      path: 'alert-receivers',
      label: (text) => text.alerts.receivers.tab,
      needs: ['GET /alerts', 'GET /alerts/webhook', 'GET /alerts/email', 'GET /alerts/mqtt'],
      page: () => import('./alert-receivers'),
    },
    {
      path: 'collectors',
      label: (text) => text.flowExport.tab,
      needs: ['GET /flows/export', 'GET /flows/export/status'],
      page: () => import('./flow-export'),
    },
    {
      path: 'captures',
      label: (text) => text.captures.tab,
      needs: ['GET /diagnostics/captures'],
      page: () => import('./captures'),
    },
  ],
  details: [
    { path: '/activity/tests/$id', page: () => import('./test') },
    { path: '/activity/captures/$id', page: () => import('./capture') },
  ],
}

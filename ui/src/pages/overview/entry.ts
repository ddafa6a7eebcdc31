import type { Entry } from '@/components/entries'

export const overview: Entry = {
  path: '/',
  icon: 'overview',
  shortcut: 'o',
  label: (text) => text.overview.label,
  question: (text) => text.overview.question,
  tabs: [
    {
      path: '',
      label: (text) => text.overview.label,
      needs: ['GET /status'],
      page: () => import('./overview'),
    },
  ],
}

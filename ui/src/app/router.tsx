// The addresses of all pages, from the entries.

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { entries } from '@/pages'
import { addressOf } from '@/components/entries'
import { NotFound } from '@/components/not-found'
import { parseSearch, stringifySearch } from '@/session/search-params'
import { Shell } from './shell'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const routes = entries.flatMap((entry) => [
  ...entry.tabs.map((tab) =>
    createRoute({
      getParentRoute: () => root,
      path: addressOf(entry, tab),
      component: lazyRouteComponent(tab.page),
      validateSearch: (search: Record<string, unknown>) => search,
    }),
  ),
  ...(entry.details ?? []).map((detail) =>
    createRoute({
      getParentRoute: () => root,
      path: detail.path,
      component: lazyRouteComponent(detail.page),
      validateSearch: (search: Record<string, unknown>) => search,
    }),
  ),
])

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: false,
})

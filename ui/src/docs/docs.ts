import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'
import '@/styles/tokens.css'
import './docs.css'
import { withCsrfToken } from './csrf'

const dark = matchMedia('(prefers-color-scheme: dark)')

/** The theme that was chosen in the dashboard, else that of the system. */
function follow(): void {
  const { classList, dataset } = document.documentElement
  classList.toggle('dark-mode', dataset.theme === undefined ? dark.matches : dataset.theme === 'dark')
}

follow()
dark.addEventListener('change', follow)

/** Names for what Swagger UI draws without a label. */
function label(domNode: HTMLElement): void {
  domNode.querySelector('#servers')?.setAttribute('aria-label', 'Server')
  domNode.querySelector('.operation-filter-input')?.setAttribute('aria-label', 'Filter by tag or path')
  for (const body of domNode.querySelectorAll('.body-param__text'))
    body.setAttribute('aria-label', 'Request body')
}

const domNode = document.getElementById('documentation')
if (domNode) {
  new MutationObserver(() => label(domNode)).observe(domNode, { childList: true, subtree: true })
  SwaggerUI({
    url: '/api/v1/openapi.json',
    domNode,
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    filter: true,
    // No other document by a parameter of the address, and no validator of others.
    queryConfigEnabled: false,
    validatorUrl: null,
    // The role that an operation needs, its audit action, and what this version lacks.
    showExtensions: true,
    requestInterceptor: withCsrfToken,
  })
}

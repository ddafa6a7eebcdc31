import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'
import './docs.css'
import { withCsrfToken } from './csrf'

const dark = matchMedia('(prefers-color-scheme: dark)')

function follow(): void {
  document.documentElement.classList.toggle('dark-mode', dark.matches)
}

follow()
dark.addEventListener('change', follow)

const domNode = document.getElementById('documentation')
if (domNode) {
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

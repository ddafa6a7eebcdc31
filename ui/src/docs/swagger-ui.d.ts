/** The part of Swagger UI that the documentation uses. The package has no types of its own. */
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export interface SwaggerRequest {
    url: string
    method?: string
    headers?: Record<string, string>
    loadSpec?: boolean
  }

  export interface SwaggerOptions {
    url: string
    domNode: HTMLElement
    deepLinking: boolean
    displayRequestDuration: boolean
    docExpansion: 'list' | 'full' | 'none'
    defaultModelsExpandDepth: number
    filter: boolean
    queryConfigEnabled: boolean
    requestInterceptor: (request: SwaggerRequest) => SwaggerRequest | Promise<SwaggerRequest>
    showExtensions: boolean
    validatorUrl: string | null
  }

  export default function SwaggerUI(options: SwaggerOptions): unknown
}

// Operations of the REST API that no page uses, each with the reason.

export const unused: Record<string, string> = {
  'GET /': 'the dashboard itself',
}

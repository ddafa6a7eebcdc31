export const upstreams = { label: 'upstreams', question: '' }

export const zones = { label: 'zones', question: '' }

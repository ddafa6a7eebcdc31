export const privacy = { label: 'privacy', question: '' }

export const lists = { label: 'lists', question: '' }

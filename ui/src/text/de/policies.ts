import type { Text } from '..'

export const policies: Text['policies'] = {}

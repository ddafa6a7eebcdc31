import type { Text } from '..'

export const dns: Text['dns'] = {}

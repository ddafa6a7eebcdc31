import type { Text } from '..'

export const system: Text['system'] = {}

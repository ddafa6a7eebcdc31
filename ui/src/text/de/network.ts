import type { Text } from '..'

export const network: Text['network'] = {}

import type { Text } from '..'

export const wizard: Text['wizard'] = {}

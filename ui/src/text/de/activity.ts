import type { Text } from '..'

export const activity: Text['activity'] = {}

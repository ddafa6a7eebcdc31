import type { Text } from '..'

export const devices: Text['devices'] = {}

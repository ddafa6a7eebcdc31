import type { Text } from '..'

export const paths: Text['paths'] = {}

import type { Text } from '..'
import { policies as en } from '../en/policies'

export const policies: Text['policies'] = en

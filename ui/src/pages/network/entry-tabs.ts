// The entry with the tabs that this daemon has, for the tabs of its pages.

import { available, type Entry } from '@/app/entries'
import { network } from './entry'

export function entryOfNetwork(): Entry {
  return available([network])[0] ?? network
}

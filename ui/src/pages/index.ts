// All entries of the navigation, in its order.

import { available, type Entry } from '@/app/entries'
import { dns } from './dns/entry'
import { overview } from './overview/entry'
import { system } from './system/entry'

export const entries: Entry[] = available([overview, dns])
import { activity } from './activity/entry'
export const entries: Entry[] = available([overview, activity])
export const entries: Entry[] = available([overview, activity, system])

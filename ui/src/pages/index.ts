// All entries of the navigation, in its order.

import { available, type Entry } from '@/components/entries'
import { activity } from './activity/entry'
import { devices } from './devices/entry'
import { dns } from './dns/entry'
import { network } from './network/entry'
import { overview } from './overview/entry'
import { paths } from './paths/entry'
import { policies } from './policies/entry'
import { system } from './system/entry'

export const entries: Entry[] = available([
  overview,
  devices,
  policies,
  paths,
  dns,
  network,
  activity,
  system,
])

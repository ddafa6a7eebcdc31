import { activity } from './activity'
import { common } from './common'
import { devices } from './devices'
import { dns } from './dns'
import { exception } from './exception'
import { hosts } from './hosts'
import { kinds } from './kinds'
import { merge } from './merge'
import { network } from './network'
import { overview } from './overview'
import { paths } from './paths'
import { policies } from './policies'
import { presets } from './presets'
import { shell } from './shell'
import { system } from './system'
import { why } from './why'
import { wizard } from './wizard'

export const en = {
  activity,
  common,
  devices,
  dns,
  exception,
  hosts,
  kinds,
  merge,
  network,
  overview,
  paths,
  policies,
  presets,
  shell,
  system,
  why,
  wizard,
}

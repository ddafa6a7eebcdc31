import type { ServerTexts } from '../phrase'
import { actions } from './actions'
import { activity } from './activity'
import { alerts } from './alerts'
import { anomalies } from './anomalies'
import { bluetooth } from './bluetooth'
import { captures } from './captures'
import { common } from './common'
import { devices } from './devices'
import { dns } from './dns'
import { exception } from './exception'
import { federation } from './federation'
import { flowExport } from './flow-export'
import { flows } from './flows'
import { functions } from './functions'
import { hosts } from './hosts'
import { kinds } from './kinds'
import { merge } from './merge'
import { mesh } from './mesh'
import { network } from './network'
import { overview } from './overview'
import { paths } from './paths'
import { policies } from './policies'
import { pause } from './pause'
import { presets } from './presets'
import { shell } from './shell'
import { storage } from './storage'
import { system } from './system'
import { top } from './top'
import { why } from './why'
import { wizard } from './wizard'

export const en = {
  actions,
  activity,
  alerts,
  anomalies,
  captures,
  common,
  devices,
  dns,
  exception,
  federation,
  flowExport,
  flows,
  functions,
  hosts,
  kinds,
  merge,
  bluetooth,
  mesh,
  network,
  overview,
  paths,
  pause,
  policies,
  presets,
  /** The gateway speaks English. */
  server: null as ServerTexts | null,
  shell,
  storage,
  system,
  top,
  why,
  wizard,
}

import { expect, it } from 'vitest'
import { withoutNumber } from '@/components/numbered'
import { uplinksForm, uplinksInput, withUplink } from './uplinks-form'

it('a list of uplinks that is not changed is sent as it was read', () => {
  const list = uplinksInput(
    withUplink(uplinksForm({ uplinks: [], wan_failover_mode: 'auto', wan_balance: false })),
  )
  const read = { ...list, wan_failover_mode: 'auto' as const, wan_balance: false }
  expect(uplinksInput(uplinksForm(read as never))).toEqual(list)
})

it('an uplink that is removed leaves no gap', () => {
  let values = uplinksForm({ uplinks: [], wan_failover_mode: 'manual', wan_balance: true })
  for (const name of ['a', 'b', 'c']) {
    values = withUplink(values)
    values = { ...values, [`uplinks[${'abc'.indexOf(name)}].interface`]: name }
  }
  const { uplinks } = uplinksInput(withoutNumber(values, 'uplinks', 1))
  expect(uplinks.map((uplink) => uplink.interface)).toEqual(['a', 'c'])
})

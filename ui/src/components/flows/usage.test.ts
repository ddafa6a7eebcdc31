import { expect, it } from 'vitest'
import { seriesOf, stepsOf } from './usage'

const row = (hour: number, name: string | null, bytes: number) => ({
  at: new Date(hour * 3_600_000).toISOString(),
  id: null,
  name,
  sent_bytes: bytes,
  received_bytes: 2 * bytes,
  flows: 1,
})

it('has a step for each hour, the present one included', () => {
  expect(stepsOf(7300, 14_400, 3600)).toEqual([7200, 10_800, 14_400])
})

it('adds up both directions, the largest first, and leaves no gap', () => {
  const series = seriesOf(
    [row(2, 'wg-a', 1), row(2, 'auto', 5), row(4, 'wg-a', 2)],
    stepsOf(7200, 14_400, 3600),
  )
  expect(series).toEqual([
    { key: 'auto', name: 'auto', bytes: 15, values: [15, 0, 0] },
    { key: 'wg-a', name: 'wg-a', bytes: 9, values: [3, 0, 6] },
  ])
})

it('adds up those that used little', () => {
  const rows = ['a', 'b', 'c', 'd', 'e', null].map((name, index) => row(2, name, 10 - index))
  const series = seriesOf(rows, [7200])
  expect(series.map(({ key }) => key)).toEqual(['a', 'b', 'c', 'd', undefined])
  expect(series[4]?.values).toEqual([33])
})

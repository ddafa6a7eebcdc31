// Bytes by device, policy or egress over time, from the totals that are kept for 13 months.

import { useGet } from '@/api/query'
import { LoadedSection } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { TimeChart } from '@/components/time-chart'
import { useNow } from '@/components/time'
import { useSearchParams } from '@/session/search-params'
import { useText } from '@/text'
import { formatBytes } from '@/text/format'
import type { Schemas } from '@/api/client'
import { seriesOf, stepsOf, type UsageGroup } from './usage'

const HOUR = 3600
/** Days that can be shown, with the steps that they are shown in. */
export const SPANS = { '1': 'hour', '7': 'hour', '30': 'day', '390': 'day' } as const
export type Days = keyof typeof SPANS

const COLOURS = [undefined, '--ok-mark', '--direct-mark', '--blocked-mark', '--control']

/** Days that the address has, and the begin of the hour from which they count, in seconds since 1970. */
export function useSpan(): { days: Days; from: number; to: number; since: string } {
  const [{ days: chosen }] = useSearchParams()
  const days: Days = chosen !== undefined && chosen in SPANS ? (chosen as Days) : '1'
  // It changes once an hour, and with it what is asked for.
  const to = Math.floor(useNow() / 1000 / HOUR) * HOUR
  const from = to - Number(days) * 24 * HOUR
  return { days, from, to, since: new Date(from * 1000).toISOString() }
}

interface Props {
  device?: string
  /** What it can be shown by; the first one if none is chosen. */
  groups: readonly UsageGroup[]
}

export function UsageSection({ device, groups }: Props) {
  const words = useText().flows.usage
  const [{ by: chosen }, change] = useSearchParams()
  const by = groups.find((each) => each === chosen) ?? groups[0] ?? 'egress'
  const { days, from, to, since } = useSpan()
  const step = SPANS[days]
  const query = useGet('/flows/usage', { query: { by, step, since, device } }, { every: 15_000 })
  const times = stepsOf(from, to, step === 'hour' ? HOUR : 24 * HOUR)
  return (
    <LoadedSection
      title={words.title}
      hint={words.hint}
      actions={
        <>
          <Segmented
            label={words.by}
            value={by}
            options={groups.map((each) => [each, words.groups[each]] as const)}
            onChange={(next) => change({ by: next })}
          />
          <Segmented
            label={words.span}
            value={days}
            options={(Object.keys(SPANS) as Days[]).map((each) => [each, words.spans[each]] as const)}
            onChange={(next) => change({ days: next })}
          />
        </>
      }
      query={query}
      lines={4}
      empty={<p className="quiet">{words.none}</p>}
    >
      {(rows) => <Chart rows={rows} times={times} by={by} />}
    </LoadedSection>
  )
}

function Chart({ rows, times, by }: { rows: Schemas['UsageEntry'][]; times: number[]; by: UsageGroup }) {
  const text = useText()
  const words = text.flows.usage
  const series = seriesOf(rows, times)
  const total = series.reduce((sum, each) => sum + each.bytes, 0)
  const nameOf = ({ key, name }: (typeof series)[number]) =>
    key === undefined
      ? words.others
      : name === 'auto' && by === 'egress'
        ? text.dns.log.defaultRoute
        : (name ?? (key === null ? words.without[by] : text.flows.deleted))
  return (
    <TimeChart
      summary={words.summary(
        formatBytes(total),
        series.map((each) => `${nameOf(each)} ${formatBytes(each.bytes)}`),
      )}
      times={times}
      series={series.map((each, index) => ({
        label: nameOf(each),
        values: each.values,
        colour: COLOURS[index],
        filled: index === 0,
      }))}
      format={formatBytes}
    />
  )
}

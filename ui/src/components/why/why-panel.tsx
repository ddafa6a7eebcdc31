// Why a packet of a device leaves the way it does: the query, the ladder of the decision, what one can do about it.

import type { ReactNode } from 'react'
import { useSearchParams } from '@/session/search-params'
import { Loaded } from '@/components/section'
import { useText } from '@/text'
import { formatNumber, formatTime } from '@/text/format'
import { useEvaluation, type Evaluation } from './evaluate'
import { Ladder } from './ladder'
import { PacketForm } from './packet-form'
import { packetOf, type PacketQuery } from './query'
import { WhyActions } from './why-actions'

interface Props {
  device: { id: string; name: string }
  /** Query of the packet. Without it, it is that of the address of the page. */
  query?: PacketQuery
  /** Further details at the right. */
  children?: ReactNode
}

export function WhyPanel({ device, query, children }: Props) {
  const text = useText()
  const [search, change] = useSearchParams()
  const packet = query ?? packetOf(device.id, search)
  const answer = useEvaluation(packet)
  return (
    <div className="cols cols--why">
      <section className="sec" aria-label={text.why.ladder}>
        <h2 className="sr">{text.why.ladder}</h2>
        {query ? null : (
          <PacketForm key={JSON.stringify(packet)} packet={packet} onAsk={change} at={answer.dataUpdatedAt} />
        )}
        <Loaded query={answer} lines={8}>
          {(evaluation) => (
            <>
              <AsOf plan={evaluation.as_of} />
              <Ladder evaluation={evaluation} asked={packet.destination !== undefined} />
            </>
          )}
        </Loaded>
      </section>
      <aside className="sec" aria-label={text.why.aside}>
        <WhyActions device={device} packet={packet} evaluation={answer.data?.data}>
          {children}
        </WhyActions>
      </aside>
    </div>
  )
}

/** The plan that decided, if it is not that of now. */
function AsOf({ plan }: { plan: Evaluation['as_of'] }) {
  const { why } = useText()
  if (!plan) return null
  const until = plan.until === null ? null : formatTime(plan.until, 'long')
  return (
    <p className="mid">
      {why.asOf(formatNumber(plan.generation), formatTime(plan.from, 'long'), until)}
      {plan.reproduced ? null : ` ${why.notReproduced}`}
    </p>
  )
}

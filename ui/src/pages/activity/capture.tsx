// One capture: its state, its packets as they come, and its end.

import { answerOf } from '@/components/answer'
import { ApiError, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Facts } from '@/components/facts'
import { NotFound } from '@/components/not-found'
import { ObjectPage } from '@/components/object-page'
import { usePageId } from '@/components/page-id'
import { Loaded, Section } from '@/components/section'
import { Clock, useAge } from '@/components/time'
import { useTitle } from '@/session/crumb'
import { useText } from '@/text'
import { formatAge, formatBytes, formatNumber } from '@/text/format'
import { CaptureActions, CaptureStateWord, stopOrDelete } from './capture-parts'
import { PacketSection } from './packet-section'

type Session = Schemas['CaptureDetail']

export default function CapturePage() {
  const text = useText()
  const words = text.captures
  const id = usePageId()
  const query = useGet('/diagnostics/capture/{id}', { path: { id }, query: { limit: 1 } }, { every: 2000 })
  const { data, error } = query
  const capture = data?.data
  const place = capture && words.placeOf(capture.interface)
  useTitle(place && words.at(place))
  if (error instanceof ApiError && error.status === 404) return <NotFound />
  return (
    <ObjectPage
      question={place ? words.questionOf(place) : words.question}
      answer={answerOf(query, text, (read) => (
        <Sentence capture={read} />
      ))}
      actions={capture ? <CaptureActions capture={capture} /> : null}
      deletion={
        capture && place && capture.state !== 'running'
          ? {
              name: capture.interface,
              title: words.deleteTitle(place),
              consequence: words.deleteConsequence(formatNumber(capture.packets)),
              remove: () => stopOrDelete(id),
              back: '/activity/captures',
            }
          : null
      }
    >
      <Loaded query={query} lines={8}>
        {(read) => (
          <>
            <PacketSection key={id} id={id} />
            <Section title={words.facts}>
              <CaptureFacts capture={read} />
            </Section>
          </>
        )}
      </Loaded>
    </ObjectPage>
  )
}

function Sentence({ capture }: { capture: Session }) {
  const words = useText().captures
  const { packets, bytes, dropped, error } = capture
  const age = useAge(capture.started_at)
  const counted = words.counted(packets, formatNumber(packets), formatBytes(bytes))
  return (
    <>
      {capture.end === null ? words.running(age) : `${words.ended[capture.end]}.`} {counted}
      {dropped > 0 ? ` ${words.lost(formatNumber(dropped))}` : null}
      {error === null ? null : <span lang="en"> {error}</span>}
    </>
  )
}

function CaptureFacts({ capture }: { capture: Session }) {
  const text = useText()
  const { columns, ...words } = text.captures
  return (
    <Facts
      facts={[
        [columns.state, <CaptureStateWord key="state" capture={capture} />],
        [words.interfaces, capture.interfaces.join(', ')],
        [
          words.filter,
          capture.filter ? (
            <code key="filter" className="wrap">
              {capture.filter}
            </code>
          ) : (
            words.noPreset
          ),
        ],
        [columns.started, <Clock key="started" time={capture.started_at} seconds />],
        [words.endedAt, capture.ended_at ? <Clock key="ended" time={capture.ended_at} seconds /> : null],
        [
          words.limits,
          words.limit(
            formatAge(capture.duration_sec, text),
            formatNumber(capture.count),
            formatBytes(capture.snaplen),
          ),
        ],
        [words.leftOut, capture.end === null ? words.knownAtEnd : formatNumber(capture.left_out)],
        capture.without_xdp.length > 0 && [words.withoutXdp, capture.without_xdp.join(', ')],
        [columns.by, capture.created_by],
      ]}
    />
  )
}

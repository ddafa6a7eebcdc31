// The captures: those that run and those that are kept, and a form that starts one.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { answerOf, Page } from '@/components/answer'
import { Empty, Loaded, LoadedSection, Section } from '@/components/section'
import { Table } from '@/components/table'
import { Age } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { useText } from '@/text'
import { formatBytes, formatNumber } from '@/text/format'
import { CaptureForm } from './capture-form'
import { CaptureActions, CaptureStateWord } from './capture-parts'
import { blank } from './capture-order'

type Session = Schemas['CaptureSession']

export default function Captures() {
  const text = useText()
  const words = text.captures
  const [search] = useSearchParams()
  const query = useGet('/diagnostics/captures', {}, { every: 3000 })
  const devices = useGet('/devices', {}, { every: false })
  const running = query.data?.data.filter((each) => each.state === 'running').length ?? 0
  const start = Object.fromEntries(
    Object.entries(search).filter(([name, value]) => name in blank && value !== undefined),
  )
  return (
    <Page
      question={words.question}
      answer={answerOf(query, text, (list) => words.sentence(running, list.length - running))}
    >
      <Section title={words.startTitle} hint={words.startHint}>
        <Loaded query={devices} lines={6}>
          {(all) => <CaptureForm key={JSON.stringify(start)} devices={all} start={start} />}
        </Loaded>
      </Section>
      <LoadedSection
        title={words.list}
        hint={words.listHint}
        query={query}
        empty={<Empty command="gateway-ctl capture start --iface lan">{words.none}</Empty>}
      >
        {(captures) => <List captures={captures} />}
      </LoadedSection>
    </Page>
  )
}

function List({ captures }: { captures: Session[] }) {
  const text = useText()
  const words = text.captures
  return (
    <Table
      label={words.list}
      rows={captures}
      id={(each) => each.id}
      columns={[
        {
          head: words.columns.capture,
          bare: true,
          cell: (each) => (
            <TwoLines second={each.preset ? words.presets[each.preset] : each.filter || words.noPreset}>
              <Link className="med" to={`/activity/captures/${each.id}`}>
                {words.at(words.placeOf(each.interface))}
              </Link>
            </TwoLines>
          ),
        },
        { head: words.columns.state, cell: (each) => <CaptureStateWord capture={each} /> },
        { head: words.columns.packets, numeric: true, cell: (each) => formatNumber(each.packets) },
        { head: words.columns.bytes, numeric: true, cell: (each) => formatBytes(each.bytes) },
        { head: words.columns.lost, numeric: true, cell: (each) => formatNumber(each.dropped) },
        { head: words.columns.started, cell: (each) => <Age time={each.started_at} /> },
        { head: words.columns.by, cell: (each) => each.created_by },
        {
          head: <span className="sr">{text.common.actions}</span>,
          numeric: true,
          cell: (each) => <CaptureActions capture={each} small />,
        },
      ]}
    />
  )
}

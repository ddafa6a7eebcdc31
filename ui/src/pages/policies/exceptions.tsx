// Exceptions: devices that are let out, or cut off, for a limited time.

import { call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { useSearchParams } from '@/session/search-params'
import { say } from '@/session/toasts'
import { answerOf, Page } from '@/components/answer'
import { Button } from '@/components/button'
import { Icon } from '@/components/icons'
import { LoadedSection, Empty, Section } from '@/components/section'
import { StateWord, type State } from '@/components/state'
import { Clock, useNow } from '@/components/time'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatAge, formatTime } from '@/text/format'
import { useNames } from './data'
import { ExceptionForm } from './exception-form'
import { effectOf, extending, letsOut, type Exception } from '@/components/exceptions/exceptions'
import { Ring } from '@/components/ring'
import { Table } from '@/components/table'

export default function Exceptions() {
  const text = useText()
  const query = useGet('/exceptions')
  const [search, setSearch] = useSearchParams()
  const all = query.data?.data ?? []
  const active = all.filter((each) => each.status === 'active')
  const ended = all.filter((each) => each.status !== 'active').reverse()
  const open = search.new === '1'
  const close = () => setSearch({ new: undefined, device: undefined, type: undefined, targets: undefined })
  return (
    <Page
      question={text.policies.exceptionQuestion}
      actions={
        <Button
          kind={open ? 'plain' : 'primary'}
          icon="plus"
          needs="operator"
          aria-expanded={open}
          onClick={() => setSearch({ new: open ? undefined : '1' })}
        >
          {text.policies.newException}
        </Button>
      }
      answer={answerOf(query, text, () =>
        text.policies.exceptionAnswer(active.length, active.filter(letsOut).length),
      )}
    >
      {open ? (
        <Section title={text.policies.composer} hint={text.policies.exceptionsHint}>
          <ExceptionForm search={search} onDone={close} />
        </Section>
      ) : null}
      <LoadedSection
        title={text.policies.exceptions}
        hint={open ? undefined : text.policies.exceptionsHint}
        query={query}
        isEmpty={(list) => list.every((each) => each.status !== 'active')}
        empty={<Empty command="gateway-ctl exceptions">{text.policies.exceptionsEmpty}</Empty>}
      >
        {() => (
          <ul className="rows excs">
            {active.map((each) => (
              <Active key={each.id} exception={each} />
            ))}
          </ul>
        )}
      </LoadedSection>
      {ended.length > 0 ? (
        <Section title={text.policies.past}>
          <Past list={ended.slice(0, 50)} />
        </Section>
      ) : null}
    </Page>
  )
}

/** Seconds until an exception ends. */
function useLeft({ expires_at, remaining_sec }: Exception): number {
  const now = useNow()
  return expires_at ? Math.max(0, (Date.parse(expires_at) - now) / 1000) : (remaining_sec ?? 0)
}

function stateOf(exception: Exception): State {
  return effectOf(exception) === 'cut' ? 'blocked' : letsOut(exception) ? 'direct' : 'idle'
}

function Active({ exception }: { exception: Exception }) {
  const text = useText()
  const names = useNames()
  const name = names.device(exception.device_id)
  const left = useLeft(exception)
  return (
    <li>
      <Ring from={exception.starts_at} until={exception.expires_at} />
      <span className="two">
        <span className="named">
          <StateWord state={stateOf(exception)}>{text.policies.exceptionTypes[exception.type]}</StateWord>{' '}
          <Link className="med" to={`/devices/${exception.device_id}`}>
            {name}
          </Link>
        </span>
        <small>
          {exception.reason || '-'}
          {exception.created_by ? `, ${text.policies.exceptionBy(exception.created_by)}` : ''}
        </small>
        {exception.targets.length > 0 ? <small className="mono">{exception.targets.join(', ')}</small> : null}
      </span>
      <TwoLines second={exception.expires_at ? text.policies.endsAt(formatTime(exception.expires_at)) : '-'}>
        {text.policies.exceptionLeft(formatAge(left, text))}
      </TwoLines>
      <ActiveButtons exception={exception} name={name} left={left} />
    </li>
  )
}

interface ButtonsProps {
  exception: Exception
  /** Name of its device. */
  name: string
  /** Seconds that are left. */
  left: number
}

function ActiveButtons({ exception, name, left }: ButtonsProps) {
  const text = useText()
  const end = useAction(
    () => call(client.DELETE('/exceptions/{id}', { params: { path: { id: exception.id } } })),
    () => text.policies.exceptionEnded(name),
  )
  const extend = useAction(
    async (minutes: number) => {
      // An exception cannot be changed: a longer one starts before the old one ends, so there is no gap.
      const longer = await call(
        client.POST('/exceptions', { body: extending(exception, left, minutes) as never }),
      )
      await call(client.DELETE('/exceptions/{id}', { params: { path: { id: exception.id } } })).catch(() =>
        say(text.policies.extendedTwice),
      )
      return longer
    },
    (data) => text.policies.extended(name, data.expires_at ? formatTime(data.expires_at) : '-'),
  )
  return (
    <span className="btns">
      {[15, 60].map((minutes) => (
        <Button
          key={minutes}
          size="small"
          needs="operator"
          busy={extend.busy}
          onClick={() => extend.run(minutes)}
        >
          {text.policies.extend(formatAge(minutes * 60, text))}
        </Button>
      ))}
      <Button size="small" needs="operator" does={end}>
        <Icon name="x" />
        {text.policies.endNow}
      </Button>
    </span>
  )
}

function Past({ list }: { list: Exception[] }) {
  const text = useText()
  const names = useNames()
  return (
    <Table
      label={text.policies.past}
      rows={list}
      id={(each) => each.id}
      columns={[
        {
          head: text.policies.exceptionType,
          bare: true,
          cell: (each) => text.policies.exceptionTypes[each.type],
        },
        { head: text.policies.exceptionDevice, cell: (each) => names.device(each.device_id) },
        { head: text.policies.exceptionReason, cell: (each) => each.reason || '-' },
        {
          head: text.policies.status,
          className: 'dim',
          cell: (each) => text.policies.exceptionStatus[each.status ?? ''] ?? each.status ?? '-',
        },
        {
          head: text.policies.exceptionUntil,
          cell: (each) => <Clock time={each.revoked_at ?? each.ended_at ?? each.expires_at} />,
        },
      ]}
    />
  )
}

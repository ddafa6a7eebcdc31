// What is filtered: the allowlist, the blocklist, rules, rewrites, feeds, presets, and an external filter.

import { useGet } from '@/api/query'
import { Link } from '@/session/link'
import { Page } from '@/components/answer'
import { Failure } from '@/components/section'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { DomainLists } from './domain-lists'
import { ExternalFilter } from './external'
import { Feeds } from './feeds'
import { NameTest } from './name-test'
import { Presets } from './presets'
import { Rewrites } from './rewrites'
import { Rules } from './rules'

export default function Lists() {
  const text = useText()
  return (
    <Page question={text.dns.lists.question} answer={<ListsSentence />}>
      <NameTest />
      <DomainLists />
      <Rules />
      <Rewrites />
      <Feeds />
      <Presets />
      <ExternalFilter />
    </Page>
  )
}

function ListsSentence() {
  const text = useText()
  const { sentence } = text.dns.lists
  const status = useGet('/dns/status')
  const rules = useGet('/dns/filter-rules').data?.data
  const block = useGet('/dns/blocklist').data?.data
  const allow = useGet('/dns/allowlist').data?.data
  const feeds = useGet('/dns/threat-feeds').data?.data
  if (status.error && !status.data) return <Failure error={status.error} />
  if (!status.data || !rules || !block || !allow || !feeds) return <>{text.common.loading}</>
  const { blocking, blocked_today, queries_today } = status.data.data
  const inEffect = (rows: { enabled: boolean }[]) => rows.filter((row) => row.enabled).length
  const parts = [
    sentence.blocked(inEffect(block)),
    sentence.allowed(inEffect(allow)),
    sentence.rules(inEffect(rules)),
    sentence.feeds(inEffect(feeds)),
  ].join(', ')
  const failing =
    [...block, ...allow].filter((row) => row.enabled && row.error).length +
    feeds.filter((row) => row.enabled && row.status === 'error').length
  return (
    <>
      {status.error
        ? sentence.unknown
        : blocking.paused_until
          ? sentence.paused(formatTime(blocking.paused_until))
          : blocking.enabled
            ? sentence.on
            : sentence.off}{' '}
      {sentence.active(parts)}{' '}
      <Link to="/dns" search={{ status: 'blocked' }}>
        {sentence.today(blocked_today, queries_today)}
      </Link>
      {failing > 0 ? ` ${sentence.failing(failing)}` : null}
    </>
  )
}

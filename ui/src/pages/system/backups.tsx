// Backups: how fresh the last one is, where they go, and exports by hand.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Facts } from '@/components/facts'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection, Empty } from '@/components/section'
import { StateWord } from '@/components/state'
import { Age, Clock, useAge } from '@/components/time'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatBytes, formatTime } from '@/text/format'
import { BackupConfig } from './backup-config'
import { Export } from './export'
import { Import } from './import'

export default function Backups() {
  const text = useText()
  const t = text.system.backups
  const status = useGet('/backup/status')
  const config = useGet('/backup/config', {}, { every: false })
  const run = useAction(
    () => call(client.POST('/backup/run')),
    (data) => (data.result === 'ok' ? t.ran(data.name) : (data.error ?? t.runFailed)),
  )
  return (
    <Page
      question={t.question}
      actions={
        <Button
          kind="primary"
          needs="admin"
          busy={run.busy || Boolean(status.data?.data.running_since)}
          onClick={() => run.run()}
        >
          {t.run}
        </Button>
      }
      answer={status.data ? <Sentence status={status.data.data} /> : text.common.loading}
    >
      <LoadedSection title={t.status} query={status} lines={4}>
        {(value) => <Target status={value} />}
      </LoadedSection>
      <div className="pair">
        <Export />
        <Import />
      </div>
      <LoadedSection title={t.config} query={config} lines={6}>
        {(value) => (
          <BackupConfig
            config={value}
            etag={config.data?.etag ?? null}
            zone={status.data?.data.time_zone ?? '-'}
          />
        )}
      </LoadedSection>
      <LoadedSection
        title={t.history}
        query={status}
        isEmpty={(value) => value.history.length === 0}
        empty={<Empty>{t.noRuns}</Empty>}
      >
        {(value) => <History runs={value.history} />}
      </LoadedSection>
    </Page>
  )
}

function Sentence({ status }: { status: Schemas['BackupStatus'] }) {
  const text = useText()
  const t = text.system.backups
  const age = useAge(status.last_success)
  return (
    <>
      {status.last_success ? `${t.yes} ${t.last(age)}.` : status.enabled ? t.never : t.off}{' '}
      {status.last_success && status.last_result === 'failed' ? `${t.failed} ` : null}
      {status.next_run ? `${t.next(formatTime(status.next_run))} ` : null}
      {status.last_success ? null : t.download}
    </>
  )
}

function Reachable({ target: { reachable } }: { target: Schemas['BackupStatus']['target'] }) {
  const text = useText()
  const t = text.system.backups
  if (reachable === null) return <StateWord state="unknown">{t.unknown}</StateWord>
  return (
    <StateWord state={reachable ? 'ok' : 'down'}>{reachable ? text.common.yes : t.unreachable}</StateWord>
  )
}

function Target({ status }: { status: Schemas['BackupStatus'] }) {
  const text = useText()
  const t = text.system.backups
  const { target } = status
  const running = useAge(status.running_since)
  return (
    <Facts
      facts={[
        [t.type, t.types[target.type] ?? target.type],
        [t.location, target.location, 'mono'],
        [
          t.reachable,
          <span key="reachable">
            <Reachable target={target} /> {target.error}
          </span>,
        ],
        [t.checked, <Age key="checked" time={target.checked_at} />],
        [t.stored, target.backups ?? text.common.noData],
        status.running_since !== null && [t.result, t.running(running)],
      ]}
    />
  )
}

function History({ runs }: { runs: Schemas['BackupRun'][] }) {
  const text = useText()
  const t = text.system.backups
  return (
    <Table
      label={t.history}
      rows={runs}
      id={(run) => `${run.at} ${run.name}`}
      columns={[
        { head: t.time, cell: (run) => <Clock time={run.at} /> },
        {
          head: t.name,
          bare: true,
          cell: (run) => (
            <TwoLines second={run.target}>
              <span className="med">{run.name || '-'}</span>
            </TwoLines>
          ),
        },
        { head: t.trigger, cell: (run) => t.triggers[run.trigger] },
        { head: t.size, numeric: true, cell: (run) => (run.size === null ? '-' : formatBytes(run.size)) },
        {
          head: t.result,
          cell: (run) => (
            <TwoLines second={(run.error ?? run.warning) ? (run.error ?? run.warning) : null}>
              {run.result === 'ok' ? (
                <StateWord state="ok">{t.ok}</StateWord>
              ) : (
                <StateWord state="degraded">{run.result === 'failed' ? t.bad : run.result}</StateWord>
              )}
            </TwoLines>
          ),
        },
      ]}
    />
  )
}

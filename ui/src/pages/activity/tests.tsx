// Test definitions: what the policies must allow and must never allow.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useChange, useGet } from '@/api/query'
import { Link } from '@/session/link'
import { sayError } from '@/session/toasts'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LinkButton } from '@/components/link-button'
import { LoadedSection, Empty } from '@/components/section'
import { Segmented } from '@/components/segmented'
import { StateWord, Tag } from '@/components/state'
import { Table } from '@/components/table'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'

type Test = Schemas['TestDefinition']
type Policies = 'stored' | 'applied'

export default function Tests() {
  const text = useText()
  const t = text.activity.tests
  const [policies, setPolicies] = useState<Policies>('stored')
  const read = useGet('/test-definitions')
  const tests = read.data?.data
  const run = useChange(() => call(client.POST('/test-definitions/run', { body: { ids: null, policies } })))
  const report = run.data?.data
  return (
    <Page
      question={t.question}
      actions={
        <LinkButton kind="primary" icon="plus" needs="operator" to="/activity/tests/new">
          {t.add}
        </LinkButton>
      }
      answer={tests ? <Sentence tests={tests} report={report} /> : text.common.loading}
    >
      <LoadedSection
        title={t.list}
        actions={
          tests && tests.length > 0 ? (
            <>
              <Segmented
                label={t.policies}
                value={policies}
                options={[
                  ['stored', t.stored],
                  ['applied', t.applied],
                ]}
                onChange={(value) => setPolicies(value)}
              />
              <Button busy={run.isPending} onClick={() => run.mutate(undefined, { onError: sayError })}>
                {t.run}
              </Button>
            </>
          ) : null
        }
        query={read}
        empty={<Empty command="gateway-ctl test-definitions">{t.what}</Empty>}
      >
        {(list) => <List tests={list} results={report?.results ?? []} />}
      </LoadedSection>
    </Page>
  )
}

function Sentence({ tests, report }: { tests: Test[]; report: Schemas['Report'] | undefined }) {
  const text = useText()
  const t = text.activity.tests
  if (tests.length === 0) return <>{t.none}</>
  if (report) {
    const run = report.results.filter((result) => result.pass !== null)
    return <>{t.passed(run.filter((result) => result.pass).length, run.length)}</>
  }
  return <>{t.sentence(tests.length, tests.filter((test) => test.gate && test.enabled).length)}</>
}

function List({ tests, results }: { tests: Test[]; results: Schemas['TestResult'][] }) {
  const text = useText()
  const t = text.activity.tests
  const devices = useGet('/devices').data?.data
  const groups = useGet('/device-groups').data?.data
  const source = (test: Test) => {
    const { device, group, cidr } = test.source
    if (device) return devices?.find((each) => each.id === device)?.name ?? device
    if (group) return groups?.find((each) => each.id === group)?.name ?? group
    return cidr ?? '-'
  }
  return (
    <Table
      label={t.list}
      rows={tests}
      id={(test) => test.id}
      columns={[
        {
          head: t.name,
          bare: true,
          cell: (test) => (
            <TwoLines second={test.proto}>
              <span className="med">
                <Link to={`/activity/tests/${test.id}`}>{test.name}</Link>
                {test.gate ? <Tag>{t.gate}</Tag> : null}
                {test.enabled ? null : <Tag>{t.disabled}</Tag>}
              </span>
            </TwoLines>
          ),
        },
        { head: t.source, cell: (test) => source(test) },
        { head: t.reaches, cell: (test) => <Targets targets={test.accept} /> },
        { head: t.never, cell: (test) => <Targets targets={test.deny} /> },
        { head: t.egress, cell: (test) => test.expect_egress ?? '-' },
        {
          head: t.result,
          cell: (test) => <Outcome result={results.find((result) => result.id === test.id)} />,
        },
      ]}
    />
  )
}

function Targets({ targets }: { targets: string[] }) {
  if (targets.length === 0) return <>-</>
  return (
    <span className="targets mono sm">
      {targets.map((target) => (
        <span key={target}>{target}</span>
      ))}
    </span>
  )
}

function Outcome({ result }: { result: Schemas['TestResult'] | undefined }) {
  const text = useText()
  const t = text.activity.tests
  if (!result) return <StateWord state="idle">{t.notRun}</StateWord>
  return (
    <span className="two">
      {result.pass === null ? <StateWord state="unknown">{t.notRun}</StateWord> : null}
      {result.pass === true ? <StateWord state="ok">{t.pass}</StateWord> : null}
      {result.pass === false ? <StateWord state="degraded">{t.fail}</StateWord> : null}
      {[...result.failures, ...(result.note ? [result.note] : [])].map((sentence) => (
        <small key={sentence}>{sentence}</small>
      ))}
    </span>
  )
}

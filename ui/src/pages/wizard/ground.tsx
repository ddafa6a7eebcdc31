// Step 2: the host, its kernel, and what runs on it. Nothing is changed.

import { useGet } from '@/api/query'
import { Skeleton } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { groundChecks, type GroundCheck } from './ground-checks'
import { StepPage, type StepProps } from './step'

export function GroundStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.ground
  const every = { every: 5000 }
  const health = useGet('/health', {}, every)
  const platform = useGet('/platform', {}, every)
  const interfaces = useGet('/interfaces', {}, every)
  const verification = useGet('/verify', {}, every)
  const observer = useGet('/observer', {}, every)
  const queries = [health, platform, interfaces, verification, observer]
  const answered = <T,>(query: { data: { data: T } | undefined; error: Error | null }) =>
    query.error ? undefined : query.data?.data
  const checks = groundChecks(
    {
      health: answered(health),
      platform: answered(platform),
      interfaces: answered(interfaces),
      verification: answered(verification),
      observer: answered(observer),
    },
    text,
  )
  const fine = checks.filter((check) => check.state === 'ok').length
  const loading = queries.some((query) => query.isPending)
  return (
    <StepPage
      {...props}
      step="ground"
      title={t.title}
      lead={t.lead}
      action={text.wizard.next}
      onAction={() => props.finish(t.fine(fine, checks.length))}
      disabled={loading}
    >
      {loading ? (
        <Skeleton lines={8} />
      ) : (
        <ul className="selftest">
          {checks.map((check) => (
            <li key={check.name}>
              <span className="med">{check.name}</span>
              <Word check={check} />
              <span className="mid">{check.detail}</span>
            </li>
          ))}
        </ul>
      )}
    </StepPage>
  )
}

function Word({ check }: { check: GroundCheck }) {
  const text = useText()
  const t = text.wizard.ground
  if (check.state === 'ok') return <StateWord state="ok">{t.ok}</StateWord>
  if (check.state === 'problem') return <StateWord state="degraded">{t.problem}</StateWord>
  return <StateWord state="unknown">{t.unknown}</StateWord>
}

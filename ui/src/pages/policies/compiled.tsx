// The compiled dataplane as text, by parts, and what others changed in the kernel.

import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Page } from '@/components/answer'
import { Button } from '@/components/button'
import { LoadedSection } from '@/components/section'
import { useAction } from '@/components/action'
import { FilterBox } from '@/components/filter-fields'
import { useText, type Text } from '@/text'
import { Drift } from './drift'
import { partsOf, searched, type Part } from './parts'

export default function Compiled() {
  const text = useText()
  const query = useGet('/render')
  const drift = useGet('/drift').data?.data
  const [search, setSearch] = useSearchParams()
  const plan = query.data?.data
  const reconcile = useAction(
    () => call(client.POST('/enforce/reconcile')),
    (data) => text.policies.reconciled(data.drift),
  )
  return (
    <Page
      question={text.policies.compiledQuestion}
      actions={
        <Button icon="refresh" needs="operator" does={reconcile}>
          {text.policies.reconcile}
        </Button>
      }
      answer={
        plan && drift
          ? text.policies.compiledAnswer(plan.generation, plan.rules.length, drift.length)
          : query.error
            ? text.common.unreachable
            : text.common.loading
      }
    >
      <LoadedSection
        title={text.policies.compiled}
        hint={plan ? text.policies.compiledHint(plan.backend, plan.hash.slice(0, 12)) : undefined}
        actions={
          <FilterBox
            label={text.policies.searchCompiled}

            placeholder={text.common.filter}
            value={search.q}
            onChange={(q) => setSearch({ q })}
          />
        }
        query={query}
        lines={8}
      >
        {(data) => <Plan plan={data} q={search.q ?? ''} />}
      </LoadedSection>
      <Drift />
    </Page>
  )
}

/** Lines of a part that are drawn. */
const MOST = 400

function Plan({ plan, q }: { plan: Schemas['RenderedPlan']; q: string }) {
  const text = useText()
  const parts = searched(partsOf(plan), q)
  if (parts.length === 0) return <p className="quiet">{text.policies.noLine}</p>
  return (
    <div className="parts">
      {parts.map((part) => (
        <details key={part.name} open={q !== '' || part.name === 'rules'}>
          <summary>
            <span className="med">{titleOf(part, text)}</span>{' '}
            <span className="dim sm">
              {part.lines.length === part.count
                ? text.policies.lines(part.count)
                : text.policies.shownOf(part.lines.length, part.count)}
            </span>
          </summary>
          {/* A box that scrolls is reached by the keyboard. */}
          {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <pre className="diff" tabIndex={0} aria-label={titleOf(part, text)}>
            {part.lines.slice(0, MOST).map((line, at) => (
              <span key={at}>{line}</span>
            ))}
            {part.lines.length > MOST ? (
              <span className="dim">{text.policies.dataplaneMore(part.lines.length - MOST)}</span>
            ) : null}
          </pre>
        </details>
      ))}
    </div>
  )
}

function titleOf(part: Part, text: Text): string {
  return text.policies.parts[part.name] ?? part.name
}

// The lines of the compiled plan that an apply changes.

import type { Schemas } from '@/api/client'
import { useText } from '@/text'

export function Dataplane({ plan }: { plan: Schemas['PlanDiff'] | null }) {
  const text = useText()
  const parts = Object.entries(plan?.parts ?? {})
  if (!plan?.changed || parts.length === 0) return <p className="quiet">{text.policies.dataplaneSame}</p>
  return (
    <>
      {parts.map(([name, part]) => {
        const more = part.added_count + part.removed_count - part.added.length - part.removed.length
        const title = text.policies.parts[name] ?? name
        return (
          <section key={name} className="part">
            <h3 className="med sm">{title}</h3>
            {/* A box that scrolls is reached by the keyboard. */}
            {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
            <pre className="diff" tabIndex={0} aria-label={title}>
              {part.removed.map((line) => (
                <span key={`- ${line}`} className="d">
                  - {line}
                </span>
              ))}
              {part.added.map((line) => (
                <span key={`+ ${line}`} className="a">
                  + {line}
                </span>
              ))}
              {more > 0 ? <span className="dim">{text.policies.dataplaneMore(more)}</span> : null}
            </pre>
          </section>
        )
      })}
    </>
  )
}

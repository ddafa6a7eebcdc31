// The ladder of a decision: packet, exception, policies, hops, and where the packet ends.

import type { Schemas } from '@/api/client'
import { useState, type ReactNode } from 'react'
import { Link } from '@/session/link'
import { Icon, type IconName } from '@/components/icons'
import { HopChip, Path } from '@/components/path'
import { English, Said } from '@/components/said'
import { Glyph, StateWord } from '@/components/state'
import { useText } from '@/text'
import { formatTime } from '@/text/format'
import { decisionState, egressOf, familiesOf, type Evaluation, type Family } from './evaluate'

interface RungProps {
  icon: IconName
  title: ReactNode
  kind?: 'blocked' | 'ghost'
  children?: ReactNode
}

function Rung({ icon, title, kind, children }: RungProps) {
  return (
    <li className={kind ? `rung rung--${kind}` : 'rung'}>
      <div className="rung__n">
        <span className="dotn">
          <Icon name={icon} />
        </span>
      </div>
      <div className="rung__b">
        <h3>{title}</h3>
        {children}
      </div>
    </li>
  )
}

interface LadderProps {
  evaluation: Evaluation
  /** A destination was asked about. Without one, an address stands for all of the internet. */
  asked: boolean
}

export function Ladder({ evaluation, asked }: LadderProps) {
  const text = useText()
  const destinationOf = (family: Family) => (asked ? family.destination : text.why.anyDestination)
  const families = familiesOf(evaluation)
  const blocked = evaluation.decision === 'block'
  return (
    <ol className="ladder">
      <Packet evaluation={evaluation} destinationOf={destinationOf} />
      <Exceptions evaluation={evaluation} />
      <Policies evaluation={evaluation} />
      <Hops evaluation={evaluation} />
      {families.map(([name, family], index) => (
        <End
          key={name}
          name={name}
          family={family}
          evaluation={evaluation}
          destination={destinationOf(family)}
          last={index === families.length - 1}
        />
      ))}
      {blocked && evaluation.hops.length > 0 ? (
        <Ghost evaluation={evaluation} destinationOf={destinationOf} />
      ) : null}
    </ol>
  )
}

type DestinationOf = (family: Family) => string

function Packet({ evaluation, destinationOf }: { evaluation: Evaluation; destinationOf: DestinationOf }) {
  const text = useText()
  const { device } = evaluation
  const family = evaluation.families.ipv4 ?? evaluation.families.ipv6
  return (
    <Rung
      icon="device"
      title={
        <>
          {text.why.packet}{' '}
          {family ? (
            <span className="dim">{text.why.fromTo(family.source, destinationOf(family))}</span>
          ) : null}
        </>
      }
    >
      <p className="mid">
        {device.name ? text.why.knownAs(device.name, device.mac ?? '-') : text.why.notKnown}{' '}
        {text.why.deviceFacts(device.groups, device.trust_class ?? '-', device.status ?? '-')}
      </p>
    </Rung>
  )
}

function Exceptions({ evaluation }: { evaluation: Evaluation }) {
  const text = useText()
  const active = evaluation.effective.exceptions
  return (
    <Rung
      icon="clock"
      title={
        <>
          {text.why.exception}{' '}
          {active.length === 0 ? <span className="dim">{text.why.noException}</span> : null}
        </>
      }
    >
      {active.length === 0 ? (
        <p className="dim">{text.why.exceptionFirst}</p>
      ) : (
        active.map((exception) => (
          <p key={exception.id} className="mid">
            {text.exception.types[exception.type]}
            {exception.expires_at ? `, ${text.exception.until(formatTime(exception.expires_at))}` : ''}.{' '}
            {exception.effective ? text.why.takesEffect : text.why.noEffect}
          </p>
        ))
      )}
    </Rung>
  )
}

/** Policies that are shown at once before the one that matches, and after it. */
const BEFORE = 12
const AFTER = 0

function Policies({ evaluation }: { evaluation: Evaluation }) {
  const text = useText()
  const [all, setAll] = useState(false)
  const { considered } = evaluation
  const winner = evaluation.matched_policies[0]?.id
  const at = considered.findIndex((each) => each.id === winner)
  const end = at < 0 ? Math.min(considered.length, BEFORE) : at + 1 + AFTER
  const start = all ? 0 : Math.max(0, Math.min(end - BEFORE, end))
  const shown = considered.slice(all ? 0 : start, all ? undefined : end)
  const rest = considered.length - (all ? considered.length : end)
  return (
    <Rung
      icon="policies"
      title={
        <>
          {text.why.policy} <span className="dim">{text.why.firstMatch}</span>
        </>
      }
    >
      {considered.length === 0 ? <p className="dim">{text.why.noPolicies}</p> : null}
      {considered.length > 0 ? (
        <ul className="cons" aria-label={text.why.policies}>
          {start > 0 ? (
            <More count={start} word={text.why.skippedBefore} onShow={() => setAll(true)} />
          ) : null}
          {shown.map((each, index) => (
            <Considered
              key={`${each.id} ${each.priority}`}
              policy={each}
              decision={each.id === winner ? evaluation.decision : null}
              later={at >= 0 && start + index > at}
            />
          ))}
          {rest > 0 ? (
            <More
              count={rest}
              word={at >= 0 ? text.why.afterMatch : text.why.skippedAfter}
              onShow={() => setAll(true)}
            />
          ) : null}
        </ul>
      ) : null}
      {evaluation.considered_omitted > 0 ? (
        <p className="dim sm">{text.why.omitted(evaluation.considered_omitted)}</p>
      ) : null}
      {evaluation.pending_changes > 0 ? (
        <p className="mid">{text.why.pending(evaluation.pending_changes)}</p>
      ) : null}
    </Rung>
  )
}

/** Policies that are not shown. */
function More({ count, word, onShow }: { count: number; word: string; onShow: () => void }) {
  const text = useText()
  return (
    <li>
      <span />
      <span />
      <span className="after">{text.why.more(count)}</span>
      <span className="after">{word}</span>
      <button type="button" className="link" onClick={onShow}>
        {text.why.show}
      </button>
    </li>
  )
}

interface ConsideredProps {
  policy: Evaluation['considered'][number]
  /** What the policy decided; null if it is not the one that matched first. */
  decision: Evaluation['decision'] | null
  later: boolean
}

function Considered({ policy, decision, later }: ConsideredProps) {
  const text = useText()
  const hit = decision !== null
  const ordinary = policy.priority >= 0 && policy.priority <= 1_000_000
  return (
    <li className={hit ? `is-hit is-hit--${decision}` : ''}>
      <span className="p">{ordinary ? policy.priority : '-'}</span>
      <Icon name={policy.matched ? 'check' : 'x'} />
      {ordinary ? (
        <Link className="nm" to={`/policies/${policy.id}`}>
          {policy.name}
        </Link>
      ) : (
        <span className="nm">{policy.name}</span>
      )}
      <span className={hit ? undefined : 'dim'}>
        <Said english={policy.reason} phrases={policy.phrases} />
      </span>
      <span className={hit ? 'sm strong' : 'sm dim'}>
        {hit ? text.why.matched : later ? text.why.notReached : text.why.skipped}
      </span>
    </li>
  )
}

function Hops({ evaluation }: { evaluation: Evaluation }) {
  const text = useText()
  const { hops } = evaluation
  const blocked = evaluation.decision === 'block'
  return hops.map((hop, index) => (
    <Rung
      key={`${hop.type}:${hop.target}`}
      icon="paths"
      kind={blocked ? 'blocked' : undefined}
      title={
        <>
          {text.why.hop(index + 1, hops.length)}{' '}
          <Path joining="line">
            <HopChip state={hop.usable ? 'ok' : 'down'} name={hop.target} kind={hop.type} />
          </Path>
        </>
      }
    >
      <p className="mid">
        {hop.usable ? text.why.usable : text.why.unusable}
        {hop.reason ? (
          <>
            : <English>{hop.reason}</English>
          </>
        ) : (
          '.'
        )}
      </p>
    </Rung>
  ))
}

interface EndProps {
  name: string
  family: Family
  evaluation: Evaluation
  destination: string
  last: boolean
}

function End({ name, family, evaluation, destination }: EndProps) {
  const text = useText()
  const heading = name ? <span className="dim">{name}</span> : null
  if (family.decision === 'block')
    return <Stopped heading={heading} family={family} effective={evaluation.effective} />
  const state = family.local ? 'idle' : decisionState(family.decision)
  const egress = family.via ? egressOf(family.via) : null
  return (
    <li className={`rung rung--end rung--${state}`}>
      <div className="rung__n">
        <Glyph state={state} />
      </div>
      <div className="rung__b">
        <h3>
          {family.local
            ? text.why.stays
            : family.decision === 'direct'
              ? text.why.leavesDirect
              : text.why.leaves}{' '}
          {heading}
          {egress ? (
            <Path joining="line">
              {family.ways.length > 1 ? (
                <Path joining="split">
                  {family.ways.map((way) => (
                    <HopChip key={way} state={state} name={way} />
                  ))}
                </Path>
              ) : (
                <HopChip state={state} name={egress.name} kind={egress.kind} />
              )}
              {family.proxy ? <HopChip state={state} name={family.proxy} kind="proxy" /> : null}
              {family.interface ? <HopChip state="idle" name={family.interface} /> : null}
              <HopChip state="idle" name={destination} />
            </Path>
          ) : null}
        </h3>
        <p className="mid">
          <Said english={family.reason} phrases={family.phrases} />
        </p>
      </div>
    </li>
  )
}

interface StoppedProps {
  heading: ReactNode
  family: Family
  effective: Evaluation['effective']
}

/** The traffic goes no further. */
function Stopped({ heading, family, effective }: StoppedProps) {
  const text = useText()
  const { fail_policy: failPolicy, policy } = effective
  return (
    <>
      {policy ? (
        <Rung
          icon="lock"
          kind="blocked"
          title={
            <>
              {text.why.failPolicy(failPolicy ?? '-')} {heading}
            </>
          }
        >
          <p className="mid">{text.why.failPolicies[failPolicy ?? ''] ?? ''}</p>
        </Rung>
      ) : null}
      <li className="rung rung--stop">
        <div className="rung__n">
          <svg aria-hidden="true">
            <use href="#g-blocked" />
          </svg>
        </div>
        <div className="rung__b">
          <h3>
            {text.why.stopped} {heading}
          </h3>
          <p className="mid">
            <Said english={family.reason} phrases={family.phrases} />
          </p>
        </div>
      </li>
    </>
  )
}

function Ghost({ evaluation, destinationOf }: { evaluation: Evaluation; destinationOf: DestinationOf }) {
  const text = useText()
  const down = evaluation.hops.filter((hop) => !hop.usable)
  const first = down[0] ?? evaluation.hops[0]
  const family = evaluation.families.ipv4 ?? evaluation.families.ipv6
  if (!first) return null
  return (
    <Rung
      icon="arrow"
      kind="ghost"
      title={
        <>
          {text.why.whenBack(first.target)}{' '}
          <Path joining="line">
            <HopChip state="idle" name={first.target} kind={first.type} />
            {family ? <HopChip state="idle" name={destinationOf(family)} /> : null}
          </Path>
        </>
      }
    />
  )
}

/** The decision as a word. */
export function DecisionWord({ decision }: { decision: Schemas['Decision'] }) {
  const text = useText()
  return <StateWord state={decisionState(decision)}>{text.why.decisions[decision]}</StateWord>
}

// What the changes do, in words: before and after, for each policy.

import { Icon } from '@/components/icons'
import { Glyph, StateWord, type State } from '@/components/state'
import { TwoLines } from '@/components/two-lines'
import { useText } from '@/text'
import { fieldsOf } from './model'
import { wordsOf } from './review-fields'
import type { ReviewItem } from './review-data'

/** The states that count most first. */
const WEIGHT: State[] = ['leak', 'direct', 'unknown', 'blocked', 'degraded', 'down', 'ok', 'idle']

export function EffectList({ items }: { items: ReviewItem[] }) {
  const text = useText()
  if (items.length === 0) return <p className="quiet">{text.policies.fedChange}</p>
  return (
    <ul className="effect">
      {items.map((item) => (
        <Item key={item.pending.id} item={item} />
      ))}
    </ul>
  )
}

function Item({ item: { pending, effects, devices } }: { item: ReviewItem }) {
  const text = useText()
  const { kind, name, stored } = pending
  const titles = text.policies.changeTitle
  const title =
    kind === 'new' || kind === 'edited' ? titles[kind](name, stored?.priority ?? 0) : titles[kind](name)
  const worst = [...effects].sort(
    (one, other) => WEIGHT.indexOf(one.after.state) - WEIGHT.indexOf(other.after.state),
  )[0]
  const fields = fieldsOf(pending).map(({ field, from, to }) =>
    text.policies.fieldChange(field, wordsOf(from, text), wordsOf(to, text)),
  )
  return (
    <li>
      <Glyph state={worst?.after.state ?? 'idle'} />
      <TwoLines
        second={devices ? text.policies.appliesTo(devices.length, devices.slice(0, 4).join(', ')) : null}
      >
        <span className="med">{title}</span>
      </TwoLines>
      <span className="changes">
        {effects.length === 0 ? <span className="dim">{text.policies.sameEffect}</span> : null}
        {effects.map((effect) => (
          <span className="change" key={effect.when}>
            {text.policies.whenState(effect.when)}{' '}
            <StateWord state={effect.before.state}>{effect.before.words}</StateWord> <Icon name="arrow" />{' '}
            <StateWord state={effect.after.state}>{effect.after.words}</StateWord>
          </span>
        ))}
      </span>
      <span className="dim sm">{fields.join('; ')}</span>
    </li>
  )
}

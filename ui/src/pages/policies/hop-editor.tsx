// The hops of a policy, a profile or a chain: an ordered list.

import { useRef } from 'react'
import { useGet } from '@/api/query'
import { Button, IconButton } from '@/components/button'
import { Icon } from '@/components/icons'
import { Segmented } from '@/components/segmented'
import { Glyph } from '@/components/state'
import { useText } from '@/text'
import { useHopState, useProxies, useTunnels } from './data'
import { useDrag } from './drag'
import { hopUse, type Hop, type HopUse } from './model'
import { moved } from './reorder'

interface Props {
  hops: readonly Hop[]
  onChange: (hops: Hop[]) => void
  errorOf: (path: string) => string | undefined
  /** Most hops. */
  most?: number
}

const TYPES: Hop['type'][] = ['vpn', 'interface', 'proxy']

export function HopEditor({ hops, onChange, errorOf, most = 8 }: Props) {
  const text = useText()
  const list = useRef<HTMLOListElement>(null)
  const targets = useTargets()
  const keys = hops.map((_, at) => String(at))
  const reorder = (order: string[]) =>
    onChange(order.map((key) => hops[Number(key)]).filter((hop) => hop !== undefined))
  const { drag, grip } = useDrag(list, (key, at) => reorder(moved(keys, [key], keys[at] ?? null)))
  const swap = (at: number, by: -1 | 1) => {
    const next = [...hops]
    const [one, other] = [next[at], next[at + by]]
    if (!one || !other) return
    next[at] = other
    next[at + by] = one
    onChange(next)
  }
  return (
    <div className="hopedit">
      <ol ref={list}>
        {hops.map((hop, at) => (
          <HopRow
            key={at}
            hop={hop}
            at={at}
            last={at === hops.length - 1}
            error={errorOf(`hops[${at}].target`) ?? errorOf(`hops[${at}].type`) ?? errorOf(`hops[${at}]`)}
            className={drag?.id === String(at) ? 'is-lift' : drag?.at === at ? 'is-drop' : undefined}
            grip={grip(String(at))}
            targets={targets}
            onChange={(changed) => onChange(hops.map((each, index) => (index === at ? changed : each)))}
            onSwap={(by) => swap(at, by)}
            onRemove={() => onChange(hops.filter((_, index) => index !== at))}
          />
        ))}
      </ol>
      {errorOf('hops') ? <p className="formrow__error">{errorOf('hops')}</p> : null}
      <div>
        <Button
          size="small"
          icon="plus"
          disabled={hops.length >= most}
          onClick={() => {
            const used = hops.map((hop) => hop.target)
            const free = targets('vpn').find((target) => !used.includes(target)) ?? targets('vpn')[0]
            onChange([...hops, { type: 'vpn', target: free ?? '' }])
          }}
        >
          {text.policies.addHop}
        </Button>
      </div>
    </div>
  )
}

interface RowProps {
  hop: Hop
  at: number
  last: boolean
  error: string | undefined
  className: string | undefined
  grip: ReturnType<ReturnType<typeof useDrag>['grip']>
  targets: (type: Hop['type']) => string[]
  onChange: (hop: Hop) => void
  onSwap: (by: -1 | 1) => void
  onRemove: () => void
}

function HopRow({ hop, at, last, error, className, grip, targets, onChange, onSwap, onRemove }: RowProps) {
  const text = useText()
  const { state, reason } = useHopState()(hop)
  return (
    <li data-row={at} className={className}>
      <button
        type="button"
        className="icobtn icobtn--s grip"
        aria-label={text.policies.dragHop(at + 1)}
        tabIndex={-1}
        {...grip}
      >
        <Icon name="grip" />
      </button>
      <span className="hopedit__n">{at + 1}</span>
      <HopChoice hop={hop} at={at} error={error} targets={targets} onChange={onChange} />
      <span title={reason || undefined}>
        <Glyph state={state} />
      </span>
      <span className="hopedit__b">
        <IconButton
          small
          icon="up"
          label={text.policies.hopUp(at + 1)}
          disabled={at === 0}
          onClick={() => onSwap(-1)}
        />
        <IconButton
          small
          icon="down"
          label={text.policies.hopDown(at + 1)}
          disabled={last}
          onClick={() => onSwap(1)}
        />
        <IconButton small icon="x" label={text.policies.removeHop(at + 1)} onClick={onRemove} />
      </span>
      {error ? <p className="formrow__error">{error}</p> : reason ? <p className="dim sm">{reason}</p> : null}
    </li>
  )
}

type ChoiceProps = Pick<RowProps, 'hop' | 'at' | 'error' | 'targets' | 'onChange'>

/** The type and the target of a hop. */
function HopChoice({ hop, at, error, targets, onChange }: ChoiceProps) {
  const text = useText()
  const known = targets(hop.type)
  const types = TYPES.includes(hop.type) ? TYPES : [...TYPES, hop.type]
  return (
    <>
      <select
        className="field"
        aria-label={text.policies.hopType(at + 1)}
        value={hop.type}
        onChange={(event) => {
          const type = event.target.value as Hop['type']
          onChange({ type, target: targets(type)[0] ?? '' })
        }}
      >
        {types.map((type) => (
          <option key={type} value={type}>
            {text.policies.hopTypes[type] ?? type}
          </option>
        ))}
      </select>
      <select
        className={error ? 'field invalid' : 'field'}
        aria-label={text.policies.hopTarget(at + 1)}
        aria-invalid={error ? true : undefined}
        value={hop.target}
        onChange={(event) => onChange({ ...hop, target: event.target.value })}
      >
        {known.includes(hop.target) ? null : (
          <option value={hop.target}>{hop.target || text.policies.choose}</option>
        )}
        {known.map((target) => (
          <option key={target} value={target}>
            {target}
          </option>
        ))}
      </select>
    </>
  )
}

/** How several hops belong together. */
export function HopUseChoice({
  way,
  onChange,
}: {
  way: { splitting: boolean; hop_mode: string }
  onChange: (change: { splitting: boolean; hop_mode: 'path' | 'failover' }) => void
}) {
  const text = useText()
  const use = hopUse(way)
  return (
    <div className="formrow">
      <span className="med">{text.policies.hopUse}</span>
      <div>
        <Segmented<HopUse>
          label={text.policies.hopUse}
          value={use}
          options={[
            ['failover', text.policies.hopUses.failover],
            ['split', text.policies.hopUses.split],
            ['path', text.policies.hopUses.path],
          ]}
          onChange={(next) =>
            onChange({ splitting: next === 'split', hop_mode: next === 'failover' ? 'failover' : 'path' })
          }
        />
      </div>
      <p className="dim sm">{text.policies.hopUseMeans[use]}</p>
    </div>
  )
}

/** Names that a hop of a kind can have. */
function useTargets() {
  const tunnels = useTunnels().data?.data
  const proxies = useProxies().data?.data
  const interfaces = useGet('/interfaces').data?.data
  return (type: Hop['type']): string[] => {
    if (type === 'vpn') return tunnels?.map((each) => each.name) ?? []
    if (type === 'proxy') return proxies?.map((each) => each.name) ?? []
    if (type === 'interface')
      return interfaces?.filter((each) => each.role === 'uplink').map((each) => each.name) ?? []
    return []
  }
}

// The form of a policy.

import { Check, Field, Select, TextField } from '@/components/fields'
import type { Draft as Drafting } from '@/components/draft'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'
import { useChains, useClasses, useProfiles } from './data'
import { FailChoice } from './fail-choice'
import { HopEditor, HopUseChoice } from './hop-editor'
import { fromLocal, toLocal } from './local-time'
import type { Draft } from './model'
import { SourcePicker } from './source-picker'

interface Props {
  draft: Drafting<Draft>
  errorOf: (path: string) => string | undefined
}

type Way = 'hops' | 'profile' | 'chain'

export function PolicyForm({ draft, errorOf }: Props) {
  const text = useText()
  const { value, set, replace } = draft
  return (
    <div className="form">
      <div className="form form--2">
        <TextField
          label={text.common.name}
          value={value.name}
          error={errorOf('name')}
          autoComplete="off"
          onChange={(name) => set('name', name)}
        />
        <TextField
          label={text.policies.priority}
          hint={text.policies.priorityHint}
          type="number"
          min={0}
          max={1_000_000}
          value={String(value.priority)}
          error={errorOf('priority')}
          onChange={(priority) => set('priority', Math.round(Number(priority)))}
        />
        <div className="wide">
          <TextField
            label={text.common.description}
            value={value.description}
            error={errorOf('description')}
            onChange={(description) => set('description', description)}
          />
        </div>
      </div>
      <h3>{text.policies.sectionWho}</h3>
      <SourcePicker
        type={value.source_type}
        value={value.source_value}
        errorOf={errorOf}
        onChange={(source_type, source_value) => replace({ ...value, source_type, source_value })}
      />
      <h3>{text.policies.sectionWhere}</h3>
      <WayFields draft={draft} errorOf={errorOf} />
      <h3>{text.policies.sectionFail}</h3>
      <FailChoice
        value={value.fail_policy}
        inherits={value.profile !== null}
        error={errorOf('fail_policy')}
        onChange={(fail_policy) => set('fail_policy', fail_policy)}
      />
      <h3>{text.policies.sectionMore}</h3>
      <MoreFields draft={draft} errorOf={errorOf} />
    </div>
  )
}

function WayFields({ draft, errorOf }: Props) {
  const text = useText()
  const { value, replace, set } = draft
  const profiles = useProfiles().data?.data ?? []
  const chains = useChains().data?.data ?? []
  const way: Way = value.chain !== null ? 'chain' : value.profile !== null ? 'profile' : 'hops'
  const fail = value.fail_policy ?? 'fail-closed'
  const named = (list: { id: string; name: string }[], key: string | null) =>
    [
      ['', text.policies.choose],
      ...list.map((each): [string, string] => [key === each.name ? each.name : each.id, each.name]),
    ] as [string, string][]
  return (
    <>
      <Segmented<Way>
        label={text.policies.way}
        value={way}
        options={[
          ['hops', text.policies.ways.hops],
          ['profile', text.policies.ways.profile],
          ['chain', text.policies.ways.chain],
        ]}
        onChange={(next) =>
          replace({
            ...value,
            profile: next === 'profile' ? (profiles[0]?.id ?? '') : null,
            chain: next === 'chain' ? (chains[0]?.id ?? '') : null,
            hops: next === 'hops' ? value.hops : [],
            splitting: next === 'hops' && value.splitting,
            fail_policy: next === 'profile' ? value.fail_policy : (value.fail_policy ?? 'fail-closed'),
          })
        }
      />
      {way === 'profile' ? (
        <Select
          label={text.policies.profile}
          value={value.profile ?? ''}
          error={errorOf('profile')}
          options={named(profiles, value.profile)}
          onChange={(profile) => set('profile', profile)}
        />
      ) : way === 'chain' ? (
        <Select
          label={text.policies.chain}
          value={value.chain ?? ''}
          error={errorOf('chain')}
          options={named(chains, value.chain)}
          onChange={(chain) => set('chain', chain)}
        />
      ) : (
        <>
          <HopEditor hops={value.hops} errorOf={errorOf} onChange={(hops) => set('hops', hops)} />
          {value.hops.length === 0 ? (
            <p className="strong">{text.policies.noHops[fail] ?? fail}</p>
          ) : value.hops.length > 1 ? (
            <HopUseChoice way={value} onChange={(change) => replace({ ...value, ...change })} />
          ) : null}
        </>
      )}
    </>
  )
}

function MoreFields({ draft: { value, set }, errorOf }: Props) {
  const text = useText()
  const classes = useClasses().data?.data ?? []
  const options = (words: Record<string, string>) =>
    Object.entries(words).map(([key, said]) => [key, said] as const)
  return (
    <div className="form form--2">
      <Select
        label={text.policies.privacyClass}
        value={value.privacy_class ?? ''}
        error={errorOf('privacy_class')}
        options={[
          ['', text.policies.noneChosen],
          ...classes.map((each): [string, string] => [
            value.privacy_class === each.name ? each.name : each.id,
            each.name,
          ]),
        ]}
        onChange={(chosen) => set('privacy_class', chosen || null)}
      />
      <Field label={text.policies.expires} hint={text.policies.expiresHint} error={errorOf('expires_at')}>
        {(id, describedBy) => (
          <input
            id={id}
            type="datetime-local"
            className="field"
            aria-describedby={describedBy}
            value={toLocal(value.expires_at)}
            onChange={(event) => set('expires_at', fromLocal(event.target.value))}
          />
        )}
      </Field>
      <Select
        label={text.policies.reject}
        value={value.reject}
        error={errorOf('reject')}
        options={options(text.policies.rejects)}
        onChange={(reject) => set('reject', reject as Draft['reject'])}
      />
      <Select
        label={text.policies.sticky}
        value={value.sticky ?? ''}
        error={errorOf('sticky')}
        options={[
          ...(value.profile === null && value.sticky !== null
            ? []
            : [['', text.policies.stickyOfProfile] as const]),
          ...options(text.policies.stickies),
        ]}
        onChange={(sticky) => set('sticky', (sticky || null) as Draft['sticky'])}
      />
      <Check
        label={text.common.enabled}
        checked={value.enabled}
        onChange={(enabled) => set('enabled', enabled)}
      />
    </div>
  )
}

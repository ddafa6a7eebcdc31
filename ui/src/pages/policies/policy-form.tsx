// The form of a policy.

import { Field, Select } from '@/components/fields'
import { FieldList } from '@/components/form-fields'
import type { Draft as Drafting } from '@/components/draft'
import { Segmented } from '@/components/segmented'
import { useText } from '@/text'
import { byName, useChains, useClasses, useProfiles } from './data'
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
        <FieldList
          draft={draft}
          error={errorOf}
          fields={[
            { field: 'name', label: text.common.name },
            {
              field: 'priority',
              kind: 'number',
              label: text.policies.priority,
              hint: text.policies.priorityHint,
              min: 0,
              max: 1_000_000,
            },
            { field: 'description', label: text.common.description, wide: true },
          ]}
        />
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
          options={byName(profiles, value.profile, text.policies.choose)}
          onChange={(profile) => set('profile', profile)}
        />
      ) : way === 'chain' ? (
        <Select
          label={text.policies.chain}
          value={value.chain ?? ''}
          error={errorOf('chain')}
          options={byName(chains, value.chain, text.policies.choose)}
          onChange={(chain) => set('chain', chain)}
        />
      ) : (
        <>
          <HopEditor hops={value.hops} errorOf={errorOf} onChange={(hops) => set('hops', hops)} />
          {value.hops.length === 0 ? (
            <p className="strong">{text.policies.noHops[fail]}</p>
          ) : value.hops.length > 1 ? (
            <HopUseChoice way={value} onChange={(change) => replace({ ...value, ...change })} />
          ) : null}
        </>
      )}
    </>
  )
}

function MoreFields({ draft, errorOf }: Props) {
  const text = useText()
  const words = text.policies
  const { value, set } = draft
  const classes = useClasses().data?.data ?? []
  return (
    <div className="form form--2">
      <FieldList
        draft={draft}
        error={errorOf}
        fields={[
          {
            field: 'privacy_class',
            kind: 'choice',
            nullable: true,
            label: words.privacyClass,
            options: byName(classes, value.privacy_class, words.noneChosen),
          },
          {
            field: 'expires_at',
            label: words.expires,
            hint: words.expiresHint,
            render: (field) => (
              <Field {...field}>
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
            ),
          },
          { field: 'reject', kind: 'choice', label: words.reject, options: Object.entries(words.rejects) },
          {
            field: 'sticky',
            kind: 'choice',
            nullable: true,
            label: words.sticky,
            options: [
              ...(value.profile === null && value.sticky !== null
                ? []
                : [['', words.stickyOfProfile] as const]),
              ...Object.entries(words.stickies),
            ],
          },
          { field: 'enabled', kind: 'check', label: text.common.enabled },
        ]}
      />
    </div>
  )
}

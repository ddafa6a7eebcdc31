// One profile.

import type { Schemas } from '@/api/client'
import { useGo } from '@/session/link'
import { linesOf } from '@/components/draft-lines'
import type { Edit } from '@/components/edit'
import { Select, TextArea } from '@/components/fields'
import { EditForm } from '@/components/form'
import { FieldList, partOf } from '@/components/form-fields'
import { ObjectRoute } from '@/components/object-form'
import { ObjectPage } from '@/components/object-page'
import { deletionOf, resource, useObjectEdit, type Stored } from '@/components/resource'
import { useText } from '@/text'
import { Back } from './back'
import { byName, useChains, useClasses } from './data'
import { FailChoice } from './fail-choice'
import { HopEditor, HopUseChoice } from './hop-editor'

type Profile = Schemas['Profile']

const profiles = resource('/profiles/{id}', {
  key: 'profile',
  type: 'profile',
  blank: {
    name: '',
    description: '',
    hops: [],
    chain: null,
    splitting: false,
    hop_mode: 'path',
    fail_policy: 'fail-closed',
    sticky: 'flow',
    dns: { mode: 'inherit', upstreams: [], preset: null },
    privacy_class: null,
    mtu: null,
  },
})

type Draft = ReturnType<typeof profiles.fields>

export default function ProfilePage() {
  const text = useText()
  return (
    <ObjectRoute resource={profiles} newTitle={text.policies.createProfile}>
      {(stored) => <ProfileForm stored={stored} />}
    </ObjectRoute>
  )
}

function ProfileForm({ stored }: { stored: Stored<Profile> | null }) {
  const text = useText()
  const go = useGo()
  const profile = stored?.data
  const edit = useObjectEdit(profiles, stored, {
    onSaved: (saved) => {
      if (!profile) go(`/policies/profiles/${saved.id}`)
    },
  })
  const { value, set } = edit.draft
  return (
    <ObjectPage
      question={text.policies.profileQuestion}
      answer={profile?.name ?? text.policies.createProfile}
      deletion={deletionOf(profiles, profile, {
        title: text.policies.deleteTitle,
        consequence: text.policies.deleteProfileMeans,
        action: text.policies.deleteProfile,
        back: '/policies/profiles',
      })}
    >
      <EditForm
        edit={edit}
        isNew={!profile}
        buttons={<Back to="/policies/profiles">{text.policies.profiles}</Back>}
      >
        <div className="form form--2">
          <FieldList
            draft={edit.draft}
            error={edit.of}
            fields={[
              { field: 'name', label: text.common.name },
              { field: 'description', label: text.common.description },
            ]}
          />
        </div>
        <h3>{text.policies.sectionWhere}</h3>
        <Hops edit={edit} />
        <h3>{text.policies.sectionFail}</h3>
        <FailChoice
          value={value.fail_policy}
          inherits={false}
          error={edit.of('fail_policy')}
          onChange={(fail) => set('fail_policy', fail ?? 'fail-closed')}
        />
        <h3>{text.policies.dns}</h3>
        <Dns edit={edit} />
        <h3>{text.policies.sectionMore}</h3>
        <div className="form form--2">
          <More edit={edit} />
        </div>
      </EditForm>
    </ObjectPage>
  )
}

/** Where its traffic goes: a chain, or hops of its own. */
function Hops({ edit }: { edit: Edit<Draft> }) {
  const text = useText()
  const chains = useChains().data?.data ?? []
  const { value, set, replace } = edit.draft
  return (
    <>
      <Select
        label={text.policies.chain}
        value={value.chain ?? ''}
        error={edit.of('chain')}
        options={byName(chains, value.chain, text.policies.noneChosen)}
        onChange={(chain) => replace({ ...value, chain: chain || null, hops: chain ? [] : value.hops })}
      />
      {value.chain ? null : (
        <>
          <HopEditor hops={value.hops} errorOf={edit.of} onChange={(hops) => set('hops', hops)} />
          {value.hops.length === 0 ? (
            <p className="strong">{text.policies.noHops[value.fail_policy]}</p>
          ) : value.hops.length > 1 ? (
            <HopUseChoice way={value} onChange={(change) => replace({ ...value, ...change })} />
          ) : null}
        </>
      )}
    </>
  )
}

function Dns({ edit }: { edit: Edit<Draft> }) {
  const text = useText()
  const { value: dns, set } = partOf(edit.draft, 'dns')
  return (
    <>
      <Select
        label={text.policies.dns}
        value={dns.mode as string}
        error={edit.of('dns.mode')}
        options={Object.entries(text.policies.dnsModes)}
        onChange={(mode) => set('mode', mode as Draft['dns']['mode'])}
      />
      {dns.mode === 'custom' ? (
        <TextArea
          label={text.policies.upstreams}
          hint={text.policies.upstreamsHint}
          value={dns.upstreams.join('\n')}
          error={edit.of('dns.upstreams')}
          onChange={(written) => set('upstreams', linesKept(written))}
        />
      ) : null}
    </>
  )
}

function More({ edit }: { edit: Edit<Draft> }) {
  const text = useText()
  const classes = useClasses().data?.data ?? []
  return (
    <FieldList
      draft={edit.draft}
      error={edit.of}
      fields={[
        {
          field: 'privacy_class',
          kind: 'choice',
          nullable: true,
          label: text.policies.privacyClass,
          options: byName(classes, edit.draft.value.privacy_class, text.policies.noneChosen),
        },
        {
          field: 'sticky',
          kind: 'choice',
          label: text.policies.sticky,
          options: Object.entries(text.policies.stickies),
        },
        {
          field: 'mtu',
          kind: 'number',
          nullable: true,
          label: text.policies.mtu,
          hint: text.policies.mtuHint,
        },
      ]}
    />
  )
}

/** Lines while they are written: the last one may still be empty. */
function linesKept(written: string): string[] {
  return written.endsWith('\n') ? [...linesOf(written), ''] : linesOf(written)
}

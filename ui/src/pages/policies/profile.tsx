// One profile.

import { useParams } from '@tanstack/react-router'
import { call, client, type Schemas } from '@/api/client'
import { get, useGet } from '@/api/query'
import { useTitle } from '@/session/crumb'
import { useGo } from '@/session/link'
import { useEdit } from '@/components/edit'
import { Select, TextArea, TextField } from '@/components/fields'
import { EditForm } from '@/components/form'
import { ObjectPage } from '@/components/object-page'
import { Failure, Skeleton } from '@/components/section'
import { useText } from '@/text'
import { Back } from './back'
import { useChains, useClasses } from './data'
import { linesOf } from '@/components/form'
import { FailChoice } from './fail-choice'
import { HopEditor, HopUseChoice } from './hop-editor'
import { policies as entry } from './entry'

type Profile = Schemas['Profile']
type Draft = ReturnType<typeof inputOf>

const EMPTY: Draft = {
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
}

function inputOf(profile: Profile) {
  const { name, description, hops, chain, splitting, hop_mode, fail_policy, sticky } = profile
  const { dns, privacy_class, mtu } = profile
  return { name, description, hops, chain, splitting, hop_mode, fail_policy, sticky, dns, privacy_class, mtu }
}

export default function ProfilePage() {
  const text = useText()
  const { id } = useParams({ strict: false }) as { id: string }
  const isNew = id === 'new'
  const query = useGet('/profiles/{id}', { path: { id } }, { enabled: !isNew })
  const profile = query.data?.data
  useTitle(isNew ? text.policies.createProfile : profile?.name)
  if (isNew) return <ProfileForm key="new" profile={null} etag={null} />
  if (!profile) return query.error ? <Failure error={query.error} /> : <Skeleton lines={6} />
  return <ProfileForm key={profile.id} profile={profile} etag={query.data?.etag ?? null} />
}

function ProfileForm({ profile, etag }: { profile: Profile | null; etag: string | null }) {
  const text = useText()
  const go = useGo()
  const chains = useChains().data?.data ?? []
  const classes = useClasses().data?.data ?? []
  const edit = useEdit<Draft, Profile>({
    key: `profile.${profile?.id ?? 'new'}`,
    version: { value: profile ? inputOf(profile) : EMPTY, etag },
    save: (body, tag) =>
      profile
        ? call(
            client.PUT('/profiles/{id}', {
              params: { path: { id: profile.id }, header: { 'If-Match': tag ?? '' } },
              body,
            }),
          )
        : call(client.POST('/profiles', { body })),
    read: async () => {
      const now = await get('/profiles/{id}', { path: { id: profile?.id ?? '' } })
      return { value: inputOf(now.data), etag: now.etag }
    },
    onSaved: (saved) => {
      if (!profile) go(`/policies/profiles/${saved.id}`)
    },
  })
  const { value, set, replace } = edit.draft
  const errorOf = edit.of
  const byName = (list: { id: string; name: string }[], chosen: string | null, none: string) => [
    ['', none] as const,
    ...list.map((each): [string, string] => [chosen === each.name ? each.name : each.id, each.name]),
  ]
  return (
    <ObjectPage
      entry={entry}
      question={text.policies.profileQuestion}
      answer={profile?.name ?? text.policies.createProfile}
      deletion={
        profile
          ? {
              name: profile.name,
              title: text.policies.deleteTitle(profile.name),
              consequence: text.policies.deleteProfileMeans,
              subject: { type: 'profile', id: profile.id },
              action: text.policies.deleteProfile,
              remove: () => call(client.DELETE('/profiles/{id}', { params: { path: { id: profile.id } } })),
              back: '/policies/profiles',
              draft: `profile.${profile.id}`,
            }
          : null
      }
    >
      <EditForm
        edit={edit}
        isNew={!profile}
        buttons={<Back to="/policies/profiles">{text.policies.profiles}</Back>}
      >
        <div className="form form--2">
          <TextField
            label={text.common.name}
            value={value.name}
            error={errorOf('name')}
            autoComplete="off"
            onChange={(name) => set('name', name)}
          />
          <TextField
            label={text.common.description}
            value={value.description}
            error={errorOf('description')}
            onChange={(description) => set('description', description)}
          />
        </div>
        <h3>{text.policies.sectionWhere}</h3>
        <Select
          label={text.policies.chain}
          value={value.chain ?? ''}
          error={errorOf('chain')}
          options={byName(chains, value.chain, text.policies.noneChosen)}
          onChange={(chain) => replace({ ...value, chain: chain || null, hops: chain ? [] : value.hops })}
        />
        {value.chain ? null : (
          <>
            <HopEditor hops={value.hops} errorOf={errorOf} onChange={(hops) => set('hops', hops)} />
            {value.hops.length === 0 ? (
              <p className="strong">{text.policies.noHops[value.fail_policy] ?? value.fail_policy}</p>
            ) : value.hops.length > 1 ? (
              <HopUseChoice way={value} onChange={(change) => replace({ ...value, ...change })} />
            ) : null}
          </>
        )}
        <h3>{text.policies.sectionFail}</h3>
        <FailChoice
          value={value.fail_policy}
          inherits={false}
          error={errorOf('fail_policy')}
          onChange={(fail) => set('fail_policy', fail ?? 'fail-closed')}
        />
        <h3>{text.policies.dns}</h3>
        <Select
          label={text.policies.dns}
          value={value.dns.mode}
          error={errorOf('dns.mode')}
          options={Object.entries(text.policies.dnsModes).map(
            ([mode, said]) => [mode as Draft['dns']['mode'], said] as const,
          )}
          onChange={(mode) => set('dns', { ...value.dns, mode })}
        />
        {value.dns.mode === 'custom' ? (
          <TextArea
            label={text.policies.upstreams}
            hint={text.policies.upstreamsHint}
            value={value.dns.upstreams.join('\n')}
            error={errorOf('dns.upstreams')}
            onChange={(written) => set('dns', { ...value.dns, upstreams: linesKept(written) })}
          />
        ) : null}
        <h3>{text.policies.sectionMore}</h3>
        <div className="form form--2">
          <Select
            label={text.policies.privacyClass}
            value={value.privacy_class ?? ''}
            error={errorOf('privacy_class')}
            options={byName(classes, value.privacy_class, text.policies.noneChosen)}
            onChange={(chosen) => set('privacy_class', chosen || null)}
          />
          <Select
            label={text.policies.sticky}
            value={value.sticky}
            error={errorOf('sticky')}
            options={Object.entries(text.policies.stickies).map(
              ([key, said]) => [key as Draft['sticky'], said] as const,
            )}
            onChange={(sticky) => set('sticky', sticky)}
          />
          <TextField
            label={text.policies.mtu}
            hint={text.policies.mtuHint}
            type="number"
            value={value.mtu === null ? '' : String(value.mtu)}
            error={errorOf('mtu')}
            onChange={(mtu) => set('mtu', mtu === '' ? null : Math.round(Number(mtu)))}
          />
        </div>
      </EditForm>
    </ObjectPage>
  )
}

/** Lines while they are written: the last one may still be empty. */
function linesKept(written: string): string[] {
  return written.endsWith('\n') ? [...linesOf(written), ''] : linesOf(written)
}

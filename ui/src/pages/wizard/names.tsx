// Step 4: who resolves names, what is filtered, and what becomes of hosts that are no device.

import { useState, type ReactNode } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Check, Select, TextField } from '@/components/fields'
import { CHOICES, settingOf, useTreatment, type Choice } from '@/components/hosts/stranger-choice'
import { PickOne } from '@/components/picker'
import { Failure, Skeleton } from '@/components/section'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'
import { FIRST_PRESETS, LIST_NAMES, LISTS, settingsOf, type ListKey, type Now } from './names-plan'
import { StepPage, type StepProps } from './step'

type Preset = Schemas['DnsPreset']

export function NamesStep(props: StepProps) {
  const text = useText()
  const t = text.hosts.first
  const servers = useGet('/settings/{key}', { path: { key: 'dns.upstream_servers' } })
  const tlsNames = useGet('/settings/{key}', { path: { key: 'dns.upstream_tls_names' } })
  const filtering = useGet('/settings/{key}', { path: { key: 'dns.filtering_enabled' } })
  const presets = useGet('/dns/presets')
  const lists = useGet('/dns/blocklist')
  const { value: strangers } = useTreatment()
  const error = [servers, tlsNames, filtering, presets, lists].find((each) => each.error)?.error
  const ready =
    servers.data && tlsNames.data && filtering.data && presets.data && lists.data && strangers !== undefined
  return ready ? (
    <Choices
      {...props}
      now={{
        servers: servers.data.data.value as string[],
        tlsNames: (tlsNames.data.data.value ?? {}) as Record<string, string>,
        filtering: filtering.data.data.value === true,
        strangers,
      }}
      presets={presets.data.data}
      subscribed={lists.data.data.flatMap((each) => (each.url ? [each.url] : []))}
    />
  ) : (
    <StepPage
      {...props}
      step="names"
      title={t.title}
      lead={t.lead}
      action={t.save}
      onAction={() => undefined}
      disabled
    >
      {error ? <Failure error={error} /> : <Skeleton lines={8} />}
    </StepPage>
  )
}

interface ChoicesProps extends StepProps {
  now: Now
  presets: Preset[]
  /** Addresses of lists that are there. */
  subscribed: string[]
}

function Choices({ now, presets, subscribed, ...props }: ChoicesProps) {
  const text = useText()
  const t = text.hosts.first
  const first = firstOf(presets)
  const [resolver, setResolver] = useState(now.servers.length > 0 ? 'keep' : (first[0]?.id ?? 'keep'))
  const [own, setOwn] = useState('')
  const [list, setList] = useState<ListKey | null>(subscribed.length === 0 ? FIRST_LIST : null)
  const [strangers, setStrangers] = useState<Choice>(
    now.strangers === 'direct' && props.progress.byPolicy ? 'policy' : now.strangers,
  )
  const typed = own.split(/[\s,]+/).filter(Boolean)
  const chosen = presets.find((each) => each.id === resolver)
  const summary = t.summary(
    chosen?.name ?? (resolver === 'own' ? typed.join(', ') : t.unchanged),
    list !== null,
    text.hosts.stranger.options[strangers],
  )
  const save = useFormAction(
    () =>
      storeNames(
        settingsOf(
          { resolver, own: typed, withList: list !== null, strangers: settingOf(strangers) },
          now,
          presets,
        ),
        list && !subscribed.includes(LISTS[list]) ? list : null,
      ),
    () => {
      props.finish(summary, { byPolicy: strangers === 'policy' })
      return t.saved
    },
  )
  return (
    <StepPage
      {...props}
      step="names"
      title={t.title}
      lead={t.lead}
      action={t.save}
      onAction={() => save.run()}
      busy={save.busy}
      disabled={resolver === 'own' && typed.length === 0}
    >
      <Failure error={save.error} />
      <ResolverChoice
        now={now}
        presets={presets}
        resolver={resolver}
        onChoose={setResolver}
        own={own}
        onType={setOwn}
      />
      <ListChoice now={now} subscribed={subscribed} list={list} onChoose={setList} />
      <Strangers chosen={strangers} onChoose={setStrangers} />
    </StepPage>
  )
}

const FIRST_LIST: ListKey = 'hageziLight'

interface ListProps {
  now: ChoicesProps['now']
  subscribed: ChoicesProps['subscribed']
  /** The list that is subscribed to; none if the filter is not wanted. */
  list: ListKey | null
  onChoose: (list: ListKey | null) => void
}

function ListChoice({ now, subscribed, list, onChoose }: ListProps) {
  const t = useText().hosts.first
  return (
    <fieldset className="choices">
      <legend className="sub">{t.filter}</legend>
      <div className="form wide">
        <Check
          label={t.useList}
          hint={t.useListHint}
          checked={list !== null}
          onChange={(on) => onChoose(on ? FIRST_LIST : null)}
        />
        {list ? (
          <Select
            label={t.list}
            hint={<code>{LISTS[list]}</code>}
            value={list}
            options={(Object.keys(LISTS) as ListKey[]).map((key) => [key, t.lists[key]] as const)}
            onChange={onChoose}
          />
        ) : null}
        {list && !now.filtering ? <p className="mid">{t.filteringOff}</p> : null}
        {subscribed.length > 0 ? <p className="mid">{t.listThere(subscribed.length)}</p> : null}
      </div>
    </fieldset>
  )
}

/** Stores the settings that change, and subscribes the list. */
async function storeNames(body: ReturnType<typeof settingsOf>, list: ListKey | null) {
  const changed = Object.keys(body).length > 0
  const saved = changed ? await call(client.PUT('/settings', { params: { header: {} }, body })) : null
  // Another try must not subscribe it twice.
  const added = list
    ? await call(
        client.POST('/dns/blocklist', {
          body: { name: LIST_NAMES[list], url: LISTS[list] } as Schemas['DnsBlockInput'],
        }),
      )
    : null
  return {
    data: undefined,
    warnings: [...(saved?.warnings ?? []), ...(added?.warnings ?? [])],
    etag: null,
    headers: new Headers(),
  }
}

/** The presets that are offered first. */
function firstOf(presets: Preset[]): Preset[] {
  return FIRST_PRESETS.flatMap((name) => presets.filter((each) => each.builtin && each.name === name))
}

interface ResolverProps extends Pick<ChoicesProps, 'now' | 'presets'> {
  /** `keep`, `own`, or the id of a preset. */
  resolver: string
  onChoose: (resolver: string) => void
  own: string
  onType: (own: string) => void
}

function ResolverChoice({ now, presets, resolver, onChoose, own, onType }: ResolverProps) {
  const text = useText()
  const t = text.hosts.first
  const first = firstOf(presets)
  const others = presets.filter((each) => !first.includes(each))
  const filteringOf = (each: Preset) => t.filterings[each.filtering]
  const radio = { group: 'resolver', chosen: resolver, onChoose }
  return (
    <>
      <fieldset className="choices">
        <legend className="sub">{t.names}</legend>
        <p className="mid wide">{t.namesHint}</p>
        <Radio
          {...radio}
          value="keep"
          title={now.servers.length > 0 ? t.keep(now.servers.join(', ')) : t.keepNone}
        />
        {first.map((each) => (
          <Radio key={each.id} {...radio} value={each.id} title={t.preset(each.name)}>
            {filteringOf(each)}
          </Radio>
        ))}
        <Radio {...radio} value="own" title={t.own}>
          {t.ownHint}
        </Radio>
      </fieldset>
      <div className="form">
        {resolver === 'own' ? (
          <TextField
            label={t.ownAddresses}
            value={own}
            onChange={onType}
            spellCheck={false}
            autoComplete="off"
            required
          />
        ) : null}
        <PickOne
          label={t.other}
          value={others.some((each) => each.id === resolver) ? resolver : ''}
          options={[
            ['', text.hosts.pick.none],
            ...others.map((each) => [each.id, `${each.name}: ${filteringOf(each)}`] as const),
          ]}
          onChange={(id) => onChoose(id || 'keep')}
        />
      </div>
    </>
  )
}

/** What becomes of hosts that are no device. */
function Strangers({ chosen, onChoose }: { chosen: Choice; onChoose: (choice: Choice) => void }) {
  const text = useText()
  const t = text.hosts.first
  return (
    <fieldset className="choices">
      <legend className="sub">{t.strangers}</legend>
      <p className="mid wide">{t.strangersHint}</p>
      {CHOICES.map((each) => (
        <Radio
          key={each}
          group="strangers"
          value={each}
          chosen={chosen}
          onChoose={(next) => onChoose(next as Choice)}
          title={text.hosts.stranger.options[each]}
        >
          {text.hosts.stranger.means[each]} {each === 'policy' ? t.policyLater : ''}{' '}
          {each === 'direct' ? '' : t.alsoYou}
        </Radio>
      ))}
    </fieldset>
  )
}

interface RadioProps {
  group: string
  value: string
  chosen: string
  onChoose: (value: string) => void
  title: string
  children?: ReactNode
}

function Radio({ group, value, chosen, onChoose, title, children }: RadioProps) {
  return (
    <label className={value === chosen ? 'choice choice--on' : 'choice'}>
      <input
        type="radio"
        name={group}
        className="pick"
        checked={value === chosen}
        onChange={() => onChoose(value)}
      />
      <span className="choice__t">
        <span className="strong">{title}</span>
      </span>
      {children ? <span className="mid">{children}</span> : null}
    </label>
  )
}

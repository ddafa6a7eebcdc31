// The settings of the DHCP server.

import type { Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button } from '@/components/button'
import type { Edit } from '@/components/edit'
import { EditForm, numberOf, textOf, wordsOf, type Values } from '@/components/form'
import { FormFields, type FieldTexts } from '@/components/form-fields'
import { nextNumber, numbersOf, withoutNumber } from '@/components/numbered'
import { resource, useObjectEdit } from '@/components/resource'
import { useText } from '@/text'

type Config = Schemas['DhcpConfig']

function formOf(config: Config): Values {
  const values: Values = {
    enabled: config.enabled,
    interface: config.interface ?? '',
    range_start: config.range_start ?? '',
    range_end: config.range_end ?? '',
    mask: config.mask,
    exclusions: config.exclusions.join(', '),
    gateway: config.gateway ?? '',
    dns: config.dns.join(', '),
    lease_sec: String(config.lease_sec),
    domain: config.domain,
    authoritative: config.authoritative,
    ping_check: config.ping_check,
  }
  return config.options.reduce<Values>((form, option) => withOption(form, option), values)
}

function withOption(values: Values, option?: Schemas['DhcpOption']): Values {
  const at = `options[${nextNumber(values, 'options')}]`
  return { ...values, [`${at}.code`]: String(option?.code ?? ''), [`${at}.value`]: option?.value ?? '' }
}

function inputOf(values: Values) {
  const value = (field: string) => values[field] ?? ''
  return {
    enabled: values.enabled === true,
    interface: textOf(value('interface')),
    range_start: textOf(value('range_start')),
    range_end: textOf(value('range_end')),
    mask: textOf(value('mask')) ?? '255.255.255.0',
    exclusions: String(value('exclusions'))
      .split(',')
      .map((each) => each.trim())
      .filter(Boolean),
    gateway: textOf(value('gateway')),
    dns: wordsOf(value('dns')),
    lease_sec: numberOf(value('lease_sec')) ?? 43_200,
    domain: String(value('domain')).trim(),
    authoritative: values.authoritative === true,
    ping_check: values.ping_check === true,
    options: numbersOf(values, 'options').map((number) => ({
      code: numberOf(value(`options[${number}].code`)) ?? 0,
      value: String(value(`options[${number}].value`)),
    })),
  }
}

const dhcpServer = resource('/dhcp', {
  key: 'dhcp',
  fields: (config): Values => (config ? formOf(config) : {}),
  body: inputOf,
})

export function DhcpServer({ config, etag }: { config: Config; etag: string | null }) {
  const words = useText().network.dhcp
  const interfaces = useGet('/interfaces', {}, { every: false }).data?.data ?? []
  const edit = useObjectEdit(dhcpServer, { data: config, etag }, { key: 'dhcp.server' })
  const { draft, problems } = edit
  const names = interfaces
    .filter((each) => each.role === 'lan')
    .map((each) => [each.name, each.name] as const)
  const texts = { ...words.fields } as FieldTexts<Values>
  for (const number of numbersOf(draft.value, 'options')) {
    texts[`options[${number}].code`] = words.optionFields.code
    texts[`options[${number}].value`] = words.optionFields.value
  }
  return (
    <EditForm edit={edit}>
      <FormFields
        draft={draft}
        texts={texts}
        error={problems}
        fields={[
          {
            field: 'enabled',
            kind: 'check',
            hint: draft.value.enabled && !config.enabled ? words.searching : undefined,
          },
          { field: 'interface', kind: 'select', options: [['', words.anyInterface], ...names] },
          { field: 'range_start' },
          { field: 'range_end' },
          { field: 'mask', required: true },
          { field: 'exclusions' },
          { field: 'gateway' },
          { field: 'dns' },
          { field: 'lease_sec', kind: 'number', required: true, min: 60, max: 31_536_000 },
          { field: 'domain' },
          { field: 'authoritative', kind: 'check' },
          { field: 'ping_check', kind: 'check' },
        ]}
      />
      <Options edit={edit} texts={texts} />
    </EditForm>
  )
}

/** The options of the server, which can be added and removed. */
function Options({ edit, texts }: { edit: Edit<Values>; texts: FieldTexts<Values> }) {
  const words = useText().network.dhcp
  const { draft, problems } = edit
  return (
    <>
      {numbersOf(draft.value, 'options').map((number) => (
        <fieldset className="part" key={number}>
          <legend>{words.option(number + 1)}</legend>
          <FormFields
            draft={draft}
            texts={texts}
            error={problems}
            fields={[
              { field: `options[${number}].code`, kind: 'number', required: true, min: 1, max: 254 },
              { field: `options[${number}].value`, required: true },
            ]}
          />
          <div>
            <Button size="small" onClick={() => draft.replace(withoutNumber(draft.value, 'options', number))}>
              {words.removeOption(number + 1)}
            </Button>
          </div>
        </fieldset>
      ))}
      <div>
        <Button size="small" icon="plus" onClick={() => draft.replace(withOption(draft.value))}>
          {words.addOption}
        </Button>
      </div>
    </>
  )
}

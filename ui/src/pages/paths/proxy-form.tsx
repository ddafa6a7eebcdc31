// A proxy as a form, for new ones and for changes.

import type { Schemas } from '@/api/client'
import type { Edit } from '@/components/edit'
import { numberOf, textOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { resource } from '@/components/resource'
import { useText } from '@/text'

export const allProxies = resource('/proxies/{id}', {
  key: 'proxy',
  type: 'proxy',
  secrets: ['password'],
  fields: (proxy: Schemas['Proxy'] | null) => {
    const check = proxy?.health_check
    return {
      name: proxy?.name ?? '',
      enabled: proxy?.enabled ?? true,
      address: proxy?.address ?? '',
      port: String(proxy?.port ?? 1080),
      username: proxy?.username ?? '',
      password: '',
      udp: proxy?.udp ?? true,
      max_connections: String(proxy?.max_connections ?? 16384),
      check_type: (check?.type ?? 'connect') as string,
      check_target: check?.target ?? '',
      check_interval: String(check?.interval_sec ?? 30),
      check_timeout: String(check?.timeout_sec ?? 5),
      check_fail: String(check?.fail ?? 3),
      check_success: String(check?.success ?? 2),
      notes: proxy?.notes ?? '',
    }
  },
  // A password that was not typed is left out, so it is kept.
  body: (form): Schemas['ProxyInput'] => ({
    name: form.name.trim(),
    type: 'socks5',
    enabled: form.enabled,
    address: form.address.trim(),
    port: numberOf(form.port) ?? 1080,
    username: textOf(form.username),
    ...(form.password === '' ? {} : { password: form.password }),
    udp: form.udp,
    udp_over_tcp: false,
    remote_dns: true,
    max_connections: numberOf(form.max_connections) ?? 16384,
    health_check: {
      type: form.check_type as Schemas['ProxyCheckTypeInput'],
      target: textOf(form.check_target),
      interval_sec: numberOf(form.check_interval) ?? 30,
      timeout_sec: numberOf(form.check_timeout) ?? 5,
      fail: numberOf(form.check_fail) ?? 3,
      success: numberOf(form.check_success) ?? 2,
    },
    notes: form.notes,
  }),
})

type ProxyForm = ReturnType<typeof allProxies.fields>

export function ProxyFields({ edit }: { edit: Edit<ProxyForm> }) {
  const words = useText().paths.proxies
  const check = (field: keyof ProxyForm, path: string) =>
    ({ field, path: `health_check.${path}`, kind: 'number', required: true, min: 1 }) as const
  return (
    <FormFields
      draft={edit.draft}
      texts={words.fields}
      error={edit.problems}
      fields={[
        { field: 'name', required: true },
        { field: 'enabled', kind: 'check' },
        { field: 'address', required: true },
        { field: 'port', kind: 'number', required: true, min: 1, max: 65535 },
        { field: 'username' },
        { field: 'password', kind: 'secret' },
        { field: 'udp', kind: 'check' },
        { field: 'max_connections', kind: 'number', required: true, min: 1 },
        {
          field: 'check_type',
          path: 'health_check.type',
          kind: 'select',
          options: Object.entries(words.checks),
        },
        edit.draft.value.check_type !== 'connect' && { field: 'check_target', path: 'health_check.target' },
        check('check_interval', 'interval_sec'),
        check('check_timeout', 'timeout_sec'),
        check('check_fail', 'fail'),
        check('check_success', 'success'),
        { field: 'notes', kind: 'area', rows: 2 },
      ]}
    />
  )
}

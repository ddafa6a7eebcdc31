// Endpoints of splitting: the weight of a tunnel in pools. The daemon creates and removes them; it does not change them.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { useGet } from '@/api/query'
import { Button, IconButton } from '@/components/button'
import { Dialog } from '@/components/dialog'
import { useEdit } from '@/components/edit'
import { EditForm, numberOf, textOf } from '@/components/form'
import { FormFields } from '@/components/form-fields'
import { Loaded, Section } from '@/components/section'
import { Table } from '@/components/table'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

type Endpoint = Schemas['SplittingEndpoint']

export function Endpoints() {
  const text = useText()
  const words = text.paths.splitting
  const endpoints = useGet('/splitting/endpoints', {}, { every: 5000 })
  const [open, setOpen] = useState(false)
  return (
    <Section
      title={words.endpoints}
      hint={words.endpointsHint}
      actions={
        <Button size="small" icon="plus" needs="operator" onClick={() => setOpen(true)}>
          {words.endpointNew}
        </Button>
      }
    >
      <Loaded query={endpoints} lines={2} empty={<p className="quiet">{words.endpointsEmpty}</p>}>
        {(all) => <List endpoints={all} />}
      </Loaded>
      <Dialog open={open} onClose={() => setOpen(false)} title={words.endpointNew}>
        <NewEndpoint onDone={() => setOpen(false)} />
      </Dialog>
    </Section>
  )
}

function List({ endpoints }: { endpoints: Endpoint[] }) {
  const text = useText()
  const words = text.paths.splitting
  const policies = useGet('/routing/policies').data?.data ?? []
  const remove = useAction(
    ({ id }: Endpoint) => call(client.DELETE('/splitting/endpoints/{id}', { params: { path: { id } } })),
    (_, { tunnel }) => words.endpointDeleted(tunnel),
  )
  const nameOf = (id: string | null) =>
    id === null ? words.everyPolicy : (policies.find((policy) => policy.id === id)?.name ?? id)
  return (
    <Table
      rows={endpoints}
      id={(endpoint) => endpoint.id}
      className="tbl--end"
      columns={[
        { head: words.columns.tunnel, bare: true, className: 'med', cell: (endpoint) => endpoint.tunnel },
        { head: words.endpointFields.policy_id, cell: (endpoint) => nameOf(endpoint.policy_id) },
        { head: words.columns.weight, numeric: true, cell: (endpoint) => endpoint.weight },
        {
          head: words.endpointFields.enabled[0],
          cell: (endpoint) => (endpoint.enabled ? text.common.yes : text.common.no),
        },
        {
          head: words.columns.state,
          cell: (endpoint) => (endpoint.state === undefined ? '-' : words.states[endpoint.state]),
        },
        {
          head: words.columns.flows,
          numeric: true,
          cell: (endpoint) => (endpoint.flows === undefined ? '-' : formatNumber(endpoint.flows)),
        },
        {
          numeric: true,
          cell: (endpoint) => (
            <IconButton
              small
              icon="x"
              needs="operator"
              label={words.endpointDelete(endpoint.tunnel)}
              disabled={remove.busy}
              onClick={() => remove.run(endpoint)}
            />
          ),
        },
      ]}
    />
  )
}

function NewEndpoint({ onDone }: { onDone: () => void }) {
  const text = useText()
  const words = text.paths.splitting
  const tunnels = useGet('/tunnels', {}, { every: false }).data?.data ?? []
  const policies = useGet('/routing/policies', {}, { every: false }).data?.data ?? []
  const version = {
    value: { tunnel: '', policy_id: '', weight: '1', enabled: true },
    etag: null,
  }
  const edit = useEdit({
    key: 'splitting.endpoint',
    version,
    save: (value) =>
      call(
        client.POST('/splitting/endpoints', {
          body: {
            tunnel: value.tunnel,
            policy_id: textOf(value.policy_id),
            weight: numberOf(value.weight) ?? 1,
            enabled: value.enabled,
          },
        }),
      ),
    onSaved: onDone,
  })
  return (
    <EditForm edit={edit} action={text.common.create} onCancel={onDone}>
      <FormFields
        draft={edit.draft}
        texts={words.endpointFields}
        error={edit.problems}
        fields={[
          {
            field: 'tunnel',
            kind: 'select',
            options: [['', '-'], ...tunnels.map((each) => [each.name, each.name] as const)],
          },
          {
            field: 'policy_id',
            kind: 'select',
            options: [
              ['', words.everyPolicy],
              ...policies.filter((each) => each.splitting).map((each) => [each.id, each.name] as const),
            ],
          },
          { field: 'weight', kind: 'number', required: true, min: 1, max: 16 },
          { field: 'enabled', kind: 'check' },
        ]}
      />
    </EditForm>
  )
}

// The fields of a tunnel, in parts.

import { useGet } from '@/api/query'
import type { Edit } from '@/components/edit'
import { type Values } from '@/components/form'
import { FormFields, type FieldSpec, type FieldTexts } from '@/components/form-fields'
import { Button } from '@/components/button'
import { useText, type Text } from '@/text'
import { peerField, PEER_FIELDS, peersOf, withoutPeer, withPeer } from './tunnel-form'

interface Props {
  edit: Edit<Values>
  type: string
}

export function TunnelFields({ edit, type }: Props) {
  const text = useText()
  const form = text.paths.form
  const check = edit.draft.value.check_type
  const uplinks = useGet('/system/wan-uplinks', {}, { every: false }).data?.data.uplinks ?? []
  return (
    <>
      <Part
        edit={edit}
        title={form.general}
        fields={[
          { field: 'name', required: true },
          {
            field: 'uplink',
            kind: 'select',
            options: [
              ['auto', form.auto],
              ...uplinks.map((uplink) => [uplink.interface, uplink.name] as const),
            ],
          },
          { field: 'enabled', kind: 'check' },
          { field: 'autostart', kind: 'check' },
        ]}
      />
      {type === 'wireguard' ? (
        <Wireguard edit={edit} />
      ) : (
        <Part edit={edit} title={form.crypto} fields={OPENVPN} />
      )}
      <Part
        edit={edit}
        title={form.health}
        fields={[
          {
            field: 'check_type',
            path: 'health_check.type',
            kind: 'select',
            options: Object.entries(form.checks),
          },
          check !== 'handshake' && { field: 'check_target', path: 'health_check.target' },
          ...HEALTH,
        ]}
      />
      <Part edit={edit} title={form.more} fields={MORE} />
    </>
  )
}

const OPENVPN: FieldSpec<Values>[] = [
  { field: 'username' },
  { field: 'password', kind: 'secret' },
  { field: 'key_passphrase', kind: 'secret' },
  { field: 'config', kind: 'area', rows: 6 },
]

const HEALTH: FieldSpec<Values>[] = [
  number('check_interval', 'health_check.interval_sec'),
  number('check_timeout', 'health_check.timeout_sec'),
  number('check_fail', 'health_check.fail'),
  number('check_success', 'health_check.success'),
  number('check_liveness', 'health_check.liveness_sec'),
]

const MORE: FieldSpec<Values>[] = [
  { field: 'mtu', kind: 'number', min: 576, max: 65535 },
  { field: 'keepalive', kind: 'number', required: true, min: 0, max: 65535 },
  { field: 'weight', kind: 'number', required: true, min: 1, max: 16 },
  { field: 'dns' },
  { field: 'masquerade', kind: 'check' },
  { field: 'tags' },
  { field: 'notes', kind: 'area', rows: 2 },
]

interface PartProps {
  edit: Edit<Values>
  title: string
  fields: (FieldSpec<Values> | false)[]
}

function Part({ edit, title, fields }: PartProps) {
  const { fields: texts } = useText().paths.form
  return (
    <fieldset className="part">
      <legend>{title}</legend>
      <FormFields draft={edit.draft} fields={fields} texts={texts} error={edit.problems} />
    </fieldset>
  )
}

/** The keys and addresses of a WireGuard tunnel, and its peers. */
function Wireguard({ edit }: { edit: Edit<Values> }) {
  const { form } = useText().paths
  const bridges = useGet('/bridges', {}, { every: false }).data?.data ?? []
  const transports = bridges.filter((bridge) => bridge.kind === 'transport')
  return (
    <>
      <Part
        edit={edit}
        title={form.crypto}
        fields={[
          { field: 'addresses', required: true },
          { field: 'private_key', kind: 'secret' },
          { field: 'listen_port', kind: 'number', min: 1, max: 65535 },
          {
            field: 'bridge',
            kind: 'select',
            options: [['', form.noBridge], ...transports.map(({ name }) => [name, name] as const)],
          },
        ]}
      />
      <Peers edit={edit} />
    </>
  )
}

function number(field: string, path: string): FieldSpec<Values> {
  return { field, path, kind: 'number', required: true, min: 1 }
}

/** The texts of the fields of a peer, under their paths. */
function peerTexts(text: Text, index: number): FieldTexts<Values> {
  return Object.fromEntries(
    PEER_FIELDS.map((field) => [peerField(index, field), text.paths.form.peerFields[field]]),
  )
}

function Peers({ edit }: { edit: Edit<Values> }) {
  const text = useText()
  const form = text.paths.form
  const { draft } = edit
  const peers = peersOf(draft.value)
  return (
    <>
      {peers.map((index) => (
        <fieldset className="part" key={index}>
          <legend>{form.peer(index + 1)}</legend>
          <FormFields
            draft={draft}
            texts={peerTexts(text, index)}
            error={edit.problems}
            fields={[
              { field: peerField(index, 'public_key'), required: true },
              { field: peerField(index, 'endpoint') },
              { field: peerField(index, 'allowed_ips') },
              { field: peerField(index, 'preshared_key'), kind: 'secret' },
              { field: peerField(index, 'persistent_keepalive'), kind: 'number', min: 0, max: 65535 },
            ]}
          />
          {peers.length > 1 ? (
            <div>
              <Button size="small" onClick={() => draft.replace(withoutPeer(draft.value, index))}>
                {form.removePeer(index + 1)}
              </Button>
            </div>
          ) : null}
        </fieldset>
      ))}
      <div>
        <Button size="small" icon="plus" onClick={() => draft.replace(withPeer(draft.value))}>
          {form.addPeer}
        </Button>
      </div>
    </>
  )
}

// Key exchange of TLS sessions: the mode, and what was negotiated.

import { call, client, type Schemas } from '@/api/client'
import { useCaller } from '@/session/caller'
import { mayDo } from '@/session/roles'
import { Facts } from '@/components/facts'
import { Select } from '@/components/fields'
import { StateWord } from '@/components/state'
import { Table } from '@/components/table'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatNumber } from '@/text/format'

export function KeyExchange({ status }: { status: Schemas['PqCrypto'] }) {
  const text = useText()
  const t = text.system.security
  const { role } = useCaller()
  const set = useAction(
    (mode: Schemas['PqMode']) => call(client.PUT('/pq-crypto', { body: { mode } })),
    () => text.common.saved,
  )
  const inbound = Object.entries(status.inbound.sessions)
  return (
    <>
      <div className="form">
        <Select
          label={t.mode}
          value={status.mode}
          disabled={set.busy || !mayDo(role, 'admin')}
          options={(['default', 'preferred', 'required'] as const).map(
            (mode) => [mode, t.modes[mode]] as const,
          )}
          onChange={(mode) => set.run(mode)}
        />
      </div>
      <Facts
        facts={[
          [t.offered, status.curves.join(', '), 'mono'],
          [
            t.inbound,
            [
              inbound.map(([group, count]) => `${group} ${formatNumber(count)}`).join(', ') || t.noInbound,
              status.inbound.refused > 0 ? t.refused(status.inbound.refused) : '',
            ].join(' '),
          ],
        ]}
      />
      {status.clients.length > 0 ? (
        <Table
          label={t.clients}
          rows={status.clients}
          id={(each) => each.name}
          dense
          columns={[
            { head: t.client, bare: true, className: 'med', cell: (each) => each.name },
            { head: t.group, className: 'mono', cell: (each) => each.last_group ?? '-' },
            {
              cell: (each) =>
                each.last_group === null ? (
                  <StateWord state="idle">{t.none}</StateWord>
                ) : each.pq ? (
                  <StateWord state="ok">{t.postQuantum}</StateWord>
                ) : (
                  <span className="st st--plain">{t.classic}</span>
                ),
            },
          ]}
        />
      ) : null}
    </>
  )
}

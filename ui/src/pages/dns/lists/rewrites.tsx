// Answers of one's own for names.

import type { Schemas } from '@/api/client'
import { FieldList } from '@/components/form-fields'
import { ObjectList, type FormProps } from '@/components/object-list'
import { resource } from '@/components/resource'
import { StateWord } from '@/components/state'
import { useText } from '@/text'

type Fields = Schemas['DnsRewriteInput']

const rewrites = resource('/dns/rewrites/{id}', {
  type: 'dns_rewrite',
  key: 'rewrite',
  name: (row) => row.domain,
  blank: { domain: '', answer: '', enabled: true },
})

export function Rewrites() {
  const text = useText()
  const { lists } = text.dns
  return (
    <ObjectList
      resource={rewrites}
      words={lists.rewrites}
      columns={[
        {
          head: lists.columns.domain,
          sort: 'domain',
          bare: true,
          cell: (row) => <span className="med">{row.domain}</span>,
        },
        { head: lists.columns.answer, sort: 'answer', cell: (row) => <code>{row.answer}</code> },
        { head: lists.columns.state, sort: 'enabled', cell: (row) => <OnOff on={row.enabled} /> },
      ]}
      form={(props) => <RewriteForm {...props} />}
      toggles
    />
  )
}

/** On is plain ink; off has a shape. */
export function OnOff({ on }: { on: boolean }) {
  const { states } = useText().dns.lists
  return on ? (
    <span className="st st--plain">{states.on}</span>
  ) : (
    <StateWord state="idle">{states.off}</StateWord>
  )
}

function RewriteForm({ draft, error }: FormProps<Fields>) {
  const { rewrites: words, form } = useText().dns.lists
  return (
    <FieldList
      draft={draft}
      error={error}
      fields={[
        { field: 'domain', label: words.domain, hint: words.domainHint, input: { autoCapitalize: 'none' } },
        { field: 'answer', label: words.answer, hint: words.answerHint },
        { field: 'enabled', kind: 'check', label: form.enabled },
      ]}
    />
  )
}

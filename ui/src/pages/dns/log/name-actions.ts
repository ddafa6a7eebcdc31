// What can be done about the name of a query: to allow or to block it, alone or with all names below, for everyone or for
// the device.

import { useQueryClient } from '@tanstack/react-query'
import { call, client, type Answer } from '@/api/client'
import { useChange } from '@/api/query'
import { say, sayError } from '@/session/toasts'
import type { Action } from '@/components/menu'
import { useText } from '@/text'
import { domainsAbove, type Entry } from './filters'

type Verb = 'allow' | 'block'

export interface NameChange {
  verb: Verb
  name: string
  /** With all names below it. */
  below: boolean
  /** For this device only. */
  device?: string
}

/** The answer to several domains at once has no id. */
function idOf(data: { id: string } | { changed: string[] }): string {
  return 'id' in data ? data.id : ''
}

type Changed = Answer<unknown> & { undo: () => Promise<unknown> }

/** An entry of a list is for a domain and all names below it; one name, or one device, needs a rule. */
async function changeName({ verb, name, below, device }: NameChange): Promise<Changed> {
  if (below && device === undefined) {
    const body = { domain: name }
    if (verb === 'allow') {
      const answer = await call(client.POST('/dns/allowlist', { body }))
      const id = idOf(answer.data)
      const undo = () => call(client.DELETE('/dns/allowlist/{id}', { params: { path: { id } } }))
      return { ...answer, undo }
    }
    const answer = await call(client.POST('/dns/blocklist', { body }))
    const path = { domain: idOf(answer.data) }
    const undo = () => call(client.DELETE('/dns/blocklist/{domain}', { params: { path } }))
    return { ...answer, undo }
  }
  const answer = await call(
    client.POST('/dns/filter-rules', {
      body: {
        pattern: name,
        match: below ? 'suffix' : 'exact',
        action: verb,
        answer: null,
        qtypes: [],
        enabled: true,
        comment: '',
        schedule: null,
        scope: { devices: device === undefined ? [] : [device], groups: [], privacy_class: null },
      },
    }),
  )
  const { id } = answer.data
  return {
    ...answer,
    undo: () => call(client.DELETE('/dns/filter-rules/{id}', { params: { path: { id } } })),
  }
}

/** The actions on the name of an entry, the likeliest first. */
export function useNameActions(entry: Entry): Action[] {
  const text = useText()
  const { log } = text.dns
  const change = useChange(changeName)
  const queries = useQueryClient()
  const undo = (take: () => Promise<unknown>) => () => {
    take()
      .catch(sayError)
      .finally(() => void queries.invalidateQueries())
  }
  const name = entry.question.name.replace(/\.$/, '')
  const stopped = entry.status === 'blocked' || entry.status === 'refused'
  const run = (input: NameChange) => () =>
    change.mutate(input, {
      onSuccess: (done) => say(log.done(input.verb, input.name, input.below), done.warnings, undo(done.undo)),
      onError: sayError,
    })
  const device = entry.client?.device_id ?? undefined
  const actions = (verb: Verb): Action[] => [
    {
      id: `${verb}-name`,
      label: log.thisName(verb),
      needs: 'operator',
      run: run({ verb, name, below: false }),
    },
    ...domainsAbove(name).map((domain) => ({
      id: `${verb}-${domain}`,
      label: log.domainAndBelow(verb, domain),
      needs: 'operator' as const,
      run: run({ verb, name: domain, below: true }),
    })),
    ...(device === undefined
      ? []
      : [
          {
            id: `${verb}-device`,
            label: log.onlyDevice(verb, entry.client?.name ?? entry.client?.ip ?? ''),
            needs: 'operator' as const,
            run: run({ verb, name, below: false, device }),
          },
        ]),
  ]
  return stopped ? actions('allow') : actions('block')
}

// The cache of the resolver: its figures, its entries by name, and flushing.

import { useState } from 'react'
import { call, client } from '@/api/client'
import { useGet } from '@/api/query'
import { useSearchParams } from '@/session/search-params'
import { Facts } from '@/components/facts'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { DataTable } from '@/components/data-table'
import { TextField } from '@/components/fields'
import { Loaded, Section } from '@/components/section'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatAge, formatBytes, formatNumber } from '@/text/format'

const LIMIT = 100

export function Cache() {
  const { cache } = useText().dns.upstreams
  const [search] = useSearchParams()
  const pattern = search.cache ?? ''
  const [asking, setAsking] = useState(false)
  const flush = useAction(
    (which: string | null) => call(client.POST('/dns/cache/flush', { body: { pattern: which } })),
    (data) => {
      setAsking(false)
      return cache.flushed(data.flushed)
    },
  )
  return (
    <Section
      title={cache.title}
      hint={cache.hint}
      actions={
        pattern === '' ? (
          <Button size="small" needs="operator" onClick={() => setAsking(true)}>
            {cache.flushAll}
          </Button>
        ) : (
          <Button size="small" needs="operator" busy={flush.busy} onClick={() => flush.run(pattern)}>
            {cache.flushPattern(pattern)}
          </Button>
        )
      }
    >
      <Figures />
      <PatternForm pattern={pattern} />
      <Entries pattern={pattern} />
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={cache.flushAll}
        consequence={cache.flushConsequence}
        name={cache.flushWord}
        action={cache.flushAll}
        busy={flush.busy}
        error={flush.error}
        onConfirm={() => flush.run(null)}
      />
    </Section>
  )
}

/** The pattern of the entries that are shown. */
function PatternForm({ pattern }: { pattern: string }) {
  const { cache } = useText().dns.upstreams
  const [, change] = useSearchParams()
  const [typed, setTyped] = useState(pattern)
  return (
    <form
      className="form form--line"
      onSubmit={(event) => {
        event.preventDefault()
        change({ cache: typed.trim() })
      }}
    >
      <TextField
        label={cache.pattern}
        value={typed}
        onChange={setTyped}
        placeholder="*.example.com"
        spellCheck={false}
        autoCapitalize="none"
      />
      <Button submit>{cache.show}</Button>
    </form>
  )
}

function Figures() {
  const { cache } = useText().dns.upstreams
  const status = useGet('/dns/status', {}, { every: 5000 })
  return (
    <Loaded query={status}>
      {({ cache: figures }) => {
        const looked = figures.hits + figures.misses
        return (
          <Facts
            className="kv"
            facts={[
              [cache.entries, formatNumber(figures.entries)],
              [cache.size, formatBytes(figures.size)],
              [cache.hits, formatNumber(figures.hits)],
              [cache.misses, formatNumber(figures.misses)],
              [cache.ratio, looked === 0 ? null : `${formatNumber((figures.hits / looked) * 100, 1)} %`],
            ]}
          />
        )
      }}
    </Loaded>
  )
}

/** The entries by name; only those that match the pattern if there is one. */
function Entries({ pattern }: { pattern: string }) {
  const text = useText()
  const { cache } = text.dns.upstreams
  const { columns } = cache
  const query = useGet(
    '/dns/cache',
    { query: { limit: LIMIT, ...(pattern === '' ? {} : { pattern }) } },
    { every: 15_000 },
  )
  return (
    <Loaded
      query={query}
      isEmpty={({ entries }) => entries.length === 0}
      empty={<p className="mid">{cache.empty}</p>}
    >
      {({ entries }) => (
        <>
          {entries.length >= LIMIT ? <p className="dim sm">{cache.first(LIMIT)}</p> : null}
          <div className="scrollbox" tabIndex={0} role="region" aria-label={cache.title}>
            <DataTable
              dense
              label={cache.title}
              rows={entries.map((entry, index) => ({ ...entry, index }))}
              // The cache is kept apart by the egress of a query, so a name can be there twice.
              id={(row) => String(row.index)}
              columns={[
                {
                  head: columns.name,
                  sort: 'name',
                  bare: true,
                  cell: (row) => <span className="med breaks">{row.name}</span>,
                },
                { head: columns.type, sort: 'type' },
                {
                  head: columns.ttl,
                  sort: 'ttl',
                  numeric: true,
                  cell: (row) => (row.ttl === 0 ? cache.stale : formatAge(row.ttl, text)),
                },
                { head: columns.rcode, sort: 'rcode' },
                {
                  head: columns.upstream,
                  sort: 'upstream',
                  cell: (row) => <span className="mono sm">{row.upstream}</span>,
                },
              ]}
            />
          </div>
        </>
      )}
    </Loaded>
  )
}

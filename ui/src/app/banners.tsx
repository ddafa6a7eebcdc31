// Lines above a page: a leak, sign-in is off, the caller may only read, a change waits for its confirmation, no daemon.

import { useGet } from '@/api/query'
import { call, client } from '@/api/client'
import { Button } from '@/components/button'
import { Pieces } from '@/components/said'
import { Glyph } from '@/components/state'
import { useNow } from '@/components/time'
import { useAction } from '@/components/action'
import { useText } from '@/text'
import { formatAge, formatTime } from '@/text/format'
import { useCaller } from '@/session/caller'
import { Link, usePath } from '@/session/link'
import { useVerdict } from '@/components/verdict'
import { verdictPieces } from '@/components/verdict-text'

export function Banners() {
  return (
    <div className="banners">
      <Leak />
      <SignInOff />
      <ReadOnly />
      <Unreachable />
      <Confirmation />
    </div>
  )
}

/** A leak shows on each page; the overview says it by itself. */
function Leak() {
  const text = useText()
  const path = usePath()
  const verdict = useVerdict()
  if (verdict.word !== 'LEAK' || path === '/') return null
  return (
    <div className="banner banner--leak">
      <Glyph state="leak" />
      <span>
        <b>LEAK</b>
        {verdict.last ? <Pieces pieces={verdictPieces(verdict.last, text)} /> : null}
      </span>
      <Link className="link" to="/">
        {text.shell.showLeak}
      </Link>
    </div>
  )
}

function SignInOff() {
  const text = useText()
  const { status } = useCaller()
  if (status?.enabled !== false) return null
  const loopback = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)
  return (
    <div className={loopback ? 'banner banner--direct' : 'banner banner--leak'}>
      <Glyph state={loopback ? 'direct' : 'leak'} />
      <span>{text.shell.everyoneIsAdmin(location.host)}</span>
    </div>
  )
}

function ReadOnly() {
  const text = useText()
  const { status } = useCaller()
  if (status?.auth !== 'localnet') return null
  return (
    <div className="banner banner--plain">
      <span>{text.shell.readOnly}</span>
    </div>
  )
}

function Unreachable() {
  const text = useText()
  const query = useGet('/status', {}, { every: 3000 })
  const { fresh } = useVerdict()
  const now = useNow()
  // A daemon that hangs is silent before its read fails.
  if (!query.error && (fresh || !query.data)) return null
  const last = query.data ? query.dataUpdatedAt : null
  return (
    <div className="banner banner--unknown">
      <Glyph state="unknown" />
      <span>
        <b>
          {last === null
            ? text.shell.unreachable
            : text.shell.silentFor(formatAge(Math.max(0, now - last) / 1000, text))}
        </b>{' '}
        {last === null ? null : text.shell.lastKnown(formatTime(new Date(last).toISOString(), 'seconds'))}{' '}
        {text.shell.kernelGoesOn}
      </span>
      <Button size="small" icon="refresh" onClick={() => void query.refetch()}>
        {text.common.retry}
      </Button>
    </div>
  )
}

/** A change that undoes itself unless it is confirmed in time. */
function Confirmation() {
  const text = useText()
  const now = useNow()
  const until = useGet('/status', {}, { every: 3000 }).data?.data.pending_confirm_until
  const confirm = useAction(
    () => call(client.POST('/apply/confirm')),
    () => text.shell.confirmed,
  )
  const revert = useAction(
    () => call(client.POST('/apply/revert')),
    () => text.shell.undone,
  )
  if (!until) return null
  const left = Math.max(0, (Date.parse(until) - now) / 1000)
  return (
    <div className="banner banner--plain">
      <span className="strong">{text.shell.confirmWithin(formatAge(left, text))}</span>
      <span>{text.shell.confirmWhy}</span>
      <span className="btns">
        <Button kind="primary" size="small" needs="operator" does={confirm}>
          {text.shell.keep}
        </Button>
        <Button size="small" needs="operator" does={revert}>
          {text.shell.undo}
        </Button>
      </span>
    </div>
  )
}

// Wipe of the gateway.

import { useState } from 'react'
import { call, client, type Schemas } from '@/api/client'
import { session } from '@/api/session'
import { useGet } from '@/api/query'
import { useCaller } from '@/session/caller'
import { Button } from '@/components/button'
import { Confirm } from '@/components/confirm'
import { Select } from '@/components/fields'
import { PasswordField } from '@/components/password-field'
import { useFormAction } from '@/components/action'
import { useText } from '@/text'

type Level = Schemas['WipeLevelInput']

const LEVELS: Level[] = ['soft', 'medium', 'hard']

export function Wipe() {
  const text = useText()
  const t = text.system.security
  const { status } = useCaller()
  const host = useGet('/platform', {}, { every: 60_000 }).data?.data.hostname
  const [level, setLevel] = useState<Level>('soft')
  const [asking, setAsking] = useState(false)
  const [password, setPassword] = useState('')
  const close = () => {
    setAsking(false)
    setPassword('')
  }
  // Without sign-in there is no password to check.
  const checked = level === 'hard' && status?.auth === 'session'
  const wipe = useFormAction(
    async () => {
      if (checked && status.user) {
        const again = await call(client.POST('/auth/login', { body: { username: status.user, password } }))
        session.signedIn(again.data.csrf_token)
      }
      return call(client.POST('/system/wipe', { body: { level } }))
    },
    (data) => {
      close()
      return data.ending ? t.ending : t.wiped
    },
  )
  return (
    <>
      <div className="form">
        <Select<Level>
          label={t.level}
          value={level}
          options={LEVELS.map((each) => [each, t.levels[each]])}
          onChange={setLevel}
        />
        <p>{t.consequences[level]}</p>
        <div className="btns">
          <Button needs="admin" disabled={host === undefined} onClick={() => setAsking(true)}>
            {t.wipeAction}
          </Button>
        </div>
      </div>
      <Confirm
        open={asking}
        onClose={close}
        title={t.wipeAction}
        consequence={t.consequences[level]}
        name={host ?? ''}
        action={t.wipe}
        busy={wipe.busy}
        error={wipe.error}
        onConfirm={() => wipe.run()}
      >
        {checked ? (
          <PasswordField
            label={t.password}
            hint={t.passwordHint}
            value={password}
            onChange={setPassword}
            required
          />
        ) : null}
      </Confirm>
    </>
  )
}

// Step 8: the way back, and what waits for a restart.

import { useState } from 'react'
import { useGet } from '@/api/query'
import { stringifySearch } from '@/session/search-params'
import { Button } from '@/components/button'
import { Command } from '@/components/command'
import { POLICY_FORM, usePolicyForAll } from '@/components/hosts/stranger-choice'
import { Section } from '@/components/section'
import { StateWord } from '@/components/state'
import { useText } from '@/text'
import { EncryptedExport } from '@/pages/system/export'
import { listOf, shown } from '@/pages/system/settings-tree'
import { StepPage, type StepProps } from './step'

export function SaveStep(props: StepProps) {
  const text = useText()
  const t = text.wizard.save
  const [saved, setSaved] = useState(false)
  const host = useGet('/platform', {}, { every: 60_000 }).data?.data.hostname
  const hosts = text.hosts.first
  const policy = usePolicyForAll()
  const finish = () => props.finish(saved ? t.savedShort : text.wizard.skipped)
  return (
    <StepPage
      {...props}
      step="save"
      title={t.title}
      lead={t.lead}
      action={t.finish}
      onAction={finish}
      last
      inner={
        <>
          {saved ? (
            <p role="status">
              <StateWord state="ok">{t.saved}</StateWord>
            </p>
          ) : null}
          <EncryptedExport host={host} onDone={() => setSaved(true)} />
        </>
      }
    >
      {props.progress.byPolicy && !policy ? (
        <Section title={hosts.policyTitle} hint={hosts.policyHint}>
          <Button
            needs="operator"
            onClick={() => {
              finish()
              // The setup is outside of the router.
              location.assign(`${POLICY_FORM.to}${stringifySearch(POLICY_FORM.search)}`)
            }}
          >
            {hosts.finishToPolicy}
          </Button>
        </Section>
      ) : null}
      <Restart />
    </StepPage>
  )
}

/** The settings that wait for a restart. */
function Restart() {
  const text = useText()
  const t = text.wizard.save
  const settings = useGet('/settings')
  const waiting = listOf(settings.data?.data).filter((setting) => setting.pending_restart)
  return (
    <Section title={t.restart} hint={waiting.length > 0 ? t.restartHint : undefined}>
      {waiting.length > 0 ? (
        <>
          <ul className="rows">
            {waiting.map((setting) => (
              <li key={setting.key}>
                <span>
                  <code>{setting.key}</code> = <code>{shown(setting.value) || '-'}</code>
                </span>
              </li>
            ))}
          </ul>
          <Command>{text.system.settings.command}</Command>
        </>
      ) : settings.data ? (
        <p className="mid">{t.noRestart}</p>
      ) : null}
    </Section>
  )
}

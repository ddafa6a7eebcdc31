// The overview: the verdict, where the devices are, their paths, and the state of what carries them.

import { AlertsPanel } from './alerts-panel'
import { DnsPanel } from './dns-panel'
import { ExceptionsPanel } from './exceptions-panel'
import { FlowSection } from './flow-section'
import { HostInbox } from './host-inbox'
import { Ledger } from './ledger'
import { SubsystemsPanel } from './subsystems-panel'
import { TopClients, TopNames } from './top-panel'
import { TunnelStrip } from './tunnel-strip'
import { UplinkStrip } from './uplink-strip'
import { useCaller } from '@/session/caller'
import { VerdictPanel } from './verdict-panel'

export default function Overview() {
  // Who reads without a credential may not read what each client asks for.
  const reads = useCaller().status
  const mayReadClients = reads !== undefined && reads.auth !== 'localnet'
  return (
    <>
      <VerdictPanel />
      <Ledger />
      <HostInbox />
      <FlowSection />
      <hr className="rule" />
      <div className="cols cols--3">
        <TunnelStrip />
        <UplinkStrip />
        <DnsPanel />
      </div>
      <hr className="rule" />
      <div className="cols cols--3e">
        <ExceptionsPanel />
        <AlertsPanel />
        <SubsystemsPanel />
      </div>
      {mayReadClients ? (
        <>
          <hr className="rule" />
          <div className="cols cols--3e">
            <TopClients />
            <TopNames />
          </div>
        </>
      ) : null}
    </>
  )
}

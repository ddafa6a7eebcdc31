//! Removes the conntrack entries of direct IPv6 flows that a new plan sends into a tunnel.
//!
//! Conntrack decides on NAT with the first packet of a flow. A direct IPv6 flow needs no NAT, so it would enter the
//! tunnel with the host's own address, and nftables drops it. After the removal, the next packet creates a new entry
//! whose source is translated. IPv4 flows are translated everywhere, and the kernel ends their entries when the
//! interface changes. TCP is left to the reset: the remote end knows the connection by another address.
//!
//! Datagrams between the plan and the removal are dropped. A flow that only a domain policy moves stays blocked until
//! its entry ends.

use std::io;
use std::sync::Arc;

use gateway_common::classify::TCP;
use gateway_core::evaluate::live_flow::leg_of;
use gateway_core::facts::Facts;
use gateway_core::indexes::LegId;
use gateway_core::network::Network;

use crate::os::bpf::EpochChange;
use crate::os::conntrack;
use crate::reconcile::Compiled;
use crate::service::Context;
use crate::supervise::blocking;

/// Follows the runs of the reconcile loop until it ends.
pub(crate) async fn run(context: Context) {
    let wake = &context.wake;
    let (mut status, compiled, facts) = (wake.status(), wake.compiled(), wake.facts());
    let mut before: Arc<Compiled> = Arc::default();
    while status.changed().await.is_ok() {
        let (after, facts) = (compiled.borrow().clone(), facts.borrow().clone());
        let network = context.worlds.last().network.clone();
        let previous = std::mem::replace(&mut before, after.clone());
        let removed = blocking(move || {
            let is_same = previous.plan.dataplane == after.plan.dataplane;
            if is_same { Ok(0) } else { remove(&after, &facts, &network) }
        });
        match removed.await {
            Ok(0) => {}
            Ok(flows) => {
                let change = EpochChange::Conntrack;
                if let Err(error) = context.dataplane.fast_path().invalidate(change) {
                    tracing::error!(%error, "failed to invalidate the fast path");
                }
                tracing::info!(flows, "removed conntrack entries of flows that moved into tunnels");
            }
            Err(error) => tracing::warn!(%error, "failed to remove conntrack entries of flows that moved"),
        }
    }
}

fn remove(compiled: &Compiled, facts: &Facts, network: &Network) -> io::Result<usize> {
    let mut removed = 0;
    for entry in conntrack::list_untranslated()? {
        let leg = leg_of(&compiled.plan.dataplane, facts, network, &entry.flow);
        if entry.flow.protocol != TCP && leg.is_some_and(LegId::is_tunnel) {
            conntrack::delete(&entry)?;
            removed += 1;
        }
    }
    Ok(removed)
}

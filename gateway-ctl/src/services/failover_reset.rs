//! Resets TCP connections that a new plan gives another egress: their tunnel went away, or a policy came, went or changed.
//!
//! The dataplane answers the client's next segment with a RST. Idle clients send nothing, so this service sends them
//! a keepalive probe. Decision 0168 says why.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gateway_common::classify::TCP;
use gateway_common::leg_selection::{FIRST_TUNNEL, offers};
use gateway_common::verdict::Reason;
use gateway_common::wire::{Choice, ChoiceKind, FlowKey, FlowValue, flow_flags};
use gateway_core::evaluate::live_flow::is_reset;
use gateway_core::plan::Dataplane;
use gateway_core::shared::Shared;

use crate::os::bpf::{self, Programs};
use crate::os::tcp_probe::probe_client;
use crate::reconcile::KernelDataplane;
use crate::service::Context;

/// Pause between two rounds of probes. A host does not answer a second probe right after the first.
const REPEAT_INTERVAL: Duration = Duration::from_secs(1);
const ROUNDS: usize = 2;
/// Maximum number of connections that are probed at a time, the latest first. Most of the older ones no longer exist.
const MAX_FLOWS: usize = 16_384;

/// Choices of each policy (IPv4, IPv6), by policy index.
type PolicyChoices = BTreeMap<u32, [Choice; 2]>;

/// Watches the runs of the reconcile loop.
pub(crate) async fn run(Context { wake, dataplane, .. }: Context) {
    let (mut status, compiled) = (wake.status(), wake.compiled());
    let mut before = PolicyChoices::new();
    let mut last = Shared::<Dataplane>::default();
    while status.changed().await.is_ok() {
        let plan = compiled.borrow().plan.dataplane.clone();
        if plan.is_same(&last) || decides_as(&plan, &last) {
            continue;
        }
        let after = policy_choices(&plan);
        let lost = lost(&before, &after);
        before = after;
        last = plan.clone();
        let change = Arc::new(Change { plan, lost });
        let (dataplane, compiled) = (dataplane.clone(), compiled.clone());
        let is_current = move |change: &Change| {
            let now = &compiled.borrow().plan.dataplane;
            now.is_same(&change.plan) || decides_as(now, &change.plan)
        };
        tokio::spawn(remind(dataplane, change, is_current));
    }
}

/// Reports whether both plans give each flow the same egress. The flow table is large, and is read only otherwise.
fn decides_as(one: &Dataplane, other: &Dataplane) -> bool {
    one.header == other.header
        && one.actions == other.actions
        && one.interfaces == other.interfaces
        && one.vlans == other.vlans
        && one.devices_by_mac == other.devices_by_mac
        && one.devices_by_address == other.devices_by_address
        && one.sources == other.sources
        && (&one.destinations, &one.destination_ports) == (&other.destinations, &other.destination_ports)
        && (&one.list_destinations, &one.list_ports) == (&other.list_destinations, &other.list_ports)
        && one.domains == other.domains
}

/// A new plan.
struct Change {
    plan: Shared<Dataplane>,
    lost: LostLegs,
}

/// Sends the probes, and repeats them while the plan decides as it did.
async fn remind(dataplane: KernelDataplane, change: Arc<Change>, is_current: impl Fn(&Change) -> bool) {
    for round in 0..ROUNDS {
        if round > 0 {
            tokio::time::sleep(REPEAT_INTERVAL).await;
            if !is_current(&change) {
                return;
            }
        }
        let (dataplane, change) = (dataplane.clone(), Arc::clone(&change));
        let sent = tokio::task::spawn_blocking(move || {
            let flows = dataplane.with(|programs| orphaned_flows(programs, &change))?;
            // The random number matches the sequence of a connection only by chance; the segment then is an ordinary
            // acknowledgement.
            Ok::<_, bpf::Error>(probe_client(&flows, getrandom::u32().unwrap_or_default()))
        });
        match sent.await {
            Ok(Ok(Ok(0))) => return,
            Ok(Ok(Ok(sent))) => tracing::info!(sent, "sent keepalive probes for orphaned flows"),
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "failed to send keepalive probes for orphaned flows")
            }
            Ok(Err(error)) => tracing::warn!(%error, "failed to read the flow table"),
            Err(_) => return,
        }
    }
}

fn policy_choices(plan: &Dataplane) -> PolicyChoices {
    plan.actions.iter().map(|action| (action.policy, [action.v4, action.v6])).collect()
}

/// Legs that flows of a policy and an address family may no longer use. `true` is IPv6.
type LostLegs = BTreeSet<(u32, bool, u8)>;

fn lost(before: &PolicyChoices, after: &PolicyChoices) -> LostLegs {
    let mut lost = LostLegs::new();
    for (policy, after) in after {
        let Some(before) = before.get(policy) else { continue };
        for ((before, after), ipv6) in before.iter().zip(after).zip([false, true]) {
            // Without a leg for new flows, existing flows wait for their leg.
            if !matches!(after.kind(), ChoiceKind::Legs | ChoiceKind::Direct) {
                continue;
            }
            let gone =
                before.all().iter().filter(|leg| **leg >= FIRST_TUNNEL && !offers(after, after.kept, **leg));
            lost.extend(gone.map(|leg| (*policy, ipv6, *leg)));
        }
    }
    lost
}

fn orphaned_flows(programs: &Programs, change: &Change) -> Result<Vec<FlowKey>, bpf::Error> {
    let is_lost = |key: &FlowKey, flow: &FlowValue| {
        key.protocol == TCP
            && flow.shown & flow_flags::ESTABLISHED != 0
            && (is_of_lost_leg(&change.lost, key, flow)
                || has_egress(flow) && is_reset(&change.plan, key, flow))
    };
    let mut flows = programs.flows(is_lost)?;
    flows.sort_by_key(|(_, flow)| std::cmp::Reverse(flow.seen));
    Ok(flows.into_iter().take(MAX_FLOWS).map(|(key, _)| key).collect())
}

/// Reports whether the policy of a flow gave up the leg. It is known of FQDN policies, too.
fn is_of_lost_leg(lost: &LostLegs, key: &FlowKey, flow: &FlowValue) -> bool {
    flow.reason == Reason::PolicyEgress as u8
        && lost.contains(&(flow.policy, !key.source.is_mapped(), flow.leg))
}

/// Reports whether a flow has left by an uplink, a tunnel or a proxy.
fn has_egress(flow: &FlowValue) -> bool {
    let reasons = [Reason::PolicyEgress, Reason::PolicyProxy, Reason::PolicyDirect, Reason::NoPolicy];
    reasons.iter().any(|reason| flow.reason == *reason as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(choice: Choice) -> PolicyChoices {
        PolicyChoices::from([(7, [choice; 2])])
    }

    #[test]
    fn kept_flows_and_flows_without_an_alternative_are_not_orphaned() {
        let before = both(Choice::legs(&[16, 17, 2]));
        let gone = |after: Choice| lost(&before, &both(after));
        assert_eq!(gone(Choice::legs(&[17])), BTreeSet::from([(7, false, 16), (7, true, 16)]));
        assert_eq!(gone(Choice::legs(&[17]).with_draining_legs(&[16])), LostLegs::new());
        assert_eq!(gone(Choice::REJECT), LostLegs::new());
        assert_eq!(gone(Choice::DROP), LostLegs::new());
        assert_eq!(gone(Choice::DIRECT).len(), 4);
        assert_eq!(lost(&before, &PolicyChoices::new()), LostLegs::new());
    }
}

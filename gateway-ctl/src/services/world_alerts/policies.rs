//! Alerts of policies that use another egress than their first, or block. The subject is the ID of the policy.

use gateway_core::compile::CompiledPolicy;
use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::HopMode;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::kinds::routing_policy::PolicyStatus;

use crate::services::active_alerts::ActiveAlerts;
use crate::world::World;

/// Reports the applied policies. Nothing is known of them while the last plan is not in force.
pub(super) fn report(alerts: &ActiveAlerts, world: &World) {
    if world.attached.is_none() || !world.status.is_plan_in_force() {
        return;
    }
    let applied = &world.state.applied.policies;
    // A policy without hops blocks by intent.
    let policies =
        world.live().policies.iter().filter(|it| it.exception_until.is_none() && !it.hops.is_empty());
    let mut reported: Vec<(AlertKind, Id)> = Vec::new();
    for policy in policies {
        let usable: Vec<bool> = policy.hops.iter().map(|hop| hop.usable).collect();
        let Some(kind) = applied.get(policy.id).and_then(|it| failure(it, policy.status, &usable)) else {
            continue;
        };
        alerts.raise(kind, &policy.id.to_string(), message(kind, policy));
        reported.push((kind, policy.id));
    }
    for kind in [AlertKind::PolicyBlocked, AlertKind::PolicyFallback] {
        let lasts = |id: Id| reported.contains(&(kind, id));
        alerts.keep(kind, |subject| subject.parse().is_ok_and(lasts));
    }
}

/// Returns the kind of alert of a policy, by whether each of its hops is usable.
fn failure(policy: &RoutingPolicy, status: PolicyStatus, usable: &[bool]) -> Option<AlertKind> {
    // A pool has no first hop, and shares its traffic among those that are left.
    let is_left = match policy.hop_mode {
        HopMode::Failover => usable.first() == Some(&false),
        HopMode::Path => usable.contains(&false),
    };
    match status {
        PolicyStatus::Blocked => Some(AlertKind::PolicyBlocked),
        PolicyStatus::Fallback => Some(AlertKind::PolicyFallback),
        PolicyStatus::Degraded if is_left && !policy.is_pool() => Some(AlertKind::PolicyFallback),
        _ => None,
    }
}

fn message(kind: AlertKind, policy: &CompiledPolicy) -> String {
    let text = match kind {
        AlertKind::PolicyBlocked => "blocks",
        _ => "uses another egress than its first",
    };
    let down = policy.hops.iter().find(|hop| !hop.usable);
    let reason = down.map(|hop| format!(": {} {}", hop.hop.target, hop.reason)).unwrap_or_default();
    format!("the policy {} {text}{reason}", policy.name)
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::{Hop, HopType};

    use super::*;

    fn policy(hop_mode: HopMode, splitting: bool) -> RoutingPolicy {
        let hop = |target: &str| Hop { r#type: HopType::Vpn, target: target.to_owned() };
        RoutingPolicy { hops: vec![hop("a"), hop("b")], hop_mode, splitting, ..RoutingPolicy::default() }
    }

    #[test]
    fn policy_is_on_its_fallback_if_it_has_left_its_first_egress() {
        use AlertKind::{PolicyBlocked, PolicyFallback};
        use PolicyStatus::{Active, Blocked, Degraded, Fallback};
        let failover = policy(HopMode::Failover, false);
        let path = policy(HopMode::Path, false);
        let pool = policy(HopMode::Path, true);
        for (policy, status, usable, expected) in [
            (&failover, Active, [true, true], None),
            (&failover, Degraded, [false, true], Some(PolicyFallback)),
            (&failover, Degraded, [true, false], None),
            (&failover, Fallback, [false, false], Some(PolicyFallback)),
            (&failover, Blocked, [false, false], Some(PolicyBlocked)),
            (&path, Degraded, [true, false], Some(PolicyFallback)),
            (&path, Blocked, [true, false], Some(PolicyBlocked)),
            (&pool, Degraded, [false, true], None),
            (&pool, Blocked, [false, false], Some(PolicyBlocked)),
        ] {
            assert_eq!(failure(policy, status, &usable), expected, "{status} {usable:?}");
        }
    }
}

//! Alerts of policies that do not use their first hop, or block. The subject is the ID of the policy.

use gateway_model::id::Id;
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
    let policies = world.live().policies.iter().filter(|policy| {
        applied.contains(policy.id) && policy.exception_until.is_none() && !policy.hops.is_empty()
    });
    let in_status = |status: PolicyStatus| policies.clone().filter(move |policy| policy.status == status);
    for (kind, status, text) in [
        (AlertKind::PolicyBlocked, PolicyStatus::Blocked, "blocks"),
        (AlertKind::PolicyFallback, PolicyStatus::Fallback, "does not use its first hop"),
    ] {
        for policy in in_status(status) {
            let down = policy.hops.iter().find(|hop| !hop.usable);
            let reason = down.map(|hop| format!(": {} {}", hop.hop.target, hop.reason)).unwrap_or_default();
            let message = format!("the policy {} {text}{reason}", policy.name);
            alerts.raise(kind, &policy.id.to_string(), message);
        }
        let lasts = |id: Id| in_status(status).any(|policy| policy.id == id);
        alerts.keep(kind, |subject| subject.parse().is_ok_and(lasts));
    }
}

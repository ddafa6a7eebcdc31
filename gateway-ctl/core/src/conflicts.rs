//! Conflicting policies and policies with missing targets.
//!
//! Looks at the policies in force as they are stored, applied or not. Each policy is held against an
//! index of those before it, so that the work grows with the number of policies and not its square.

mod conflict;
mod cover;
mod targets;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::{HopMode, RoutingPolicy, precedence};

use crate::compile::{Compiled, Input};
pub use conflict::{Conflict, ConflictKind, Severity};
use cover::Cover;

/// Returns all conflicts among the stored policies, in the order of evaluation. `compiled` holds the egresses.
pub fn conflicts(input: &Input<'_>, compiled: &Compiled) -> Vec<Conflict> {
    let stored = input.state.routing_policies.iter().filter(|policy| policy.in_force(input.now));
    let whole: Vec<Cow<'_, RoutingPolicy>> = stored.map(|policy| input.state.resolved(policy)).collect();
    let mut policies: Vec<&RoutingPolicy> = whole.iter().map(AsRef::as_ref).collect();
    policies.sort_by_cached_key(|policy| precedence(policy));
    let mut found = Vec::new();
    let mut cover = Cover::new(input);
    // First policy of a source and priority. The same egress is no contradiction.
    let mut scopes: BTreeMap<(i64, Source), usize> = BTreeMap::new();
    let mut contradicted = BTreeSet::new();
    for (place, policy) in policies.iter().enumerate() {
        let sources = policy.sources();
        for source in &sources {
            let first = *scopes.entry((policy.priority, source.clone())).or_insert(place);
            if first != place
                && !has_same_action(policies[first], policy)
                && contradicted.insert((first, place))
            {
                found.push(contradiction(policies[first], policy, source));
            }
        }
        if let Some(covering) = cover.covering(&sources) {
            let before: Vec<&RoutingPolicy> = covering.iter().map(|place| policies[*place]).collect();
            // The contradiction already implies that the later policy matches nothing.
            if !covering.iter().any(|first| contradicted.contains(&(*first, place))) {
                found.push(shadow(policy, &sources, &before));
            }
        }
        cover.add(place, &sources);
        targets::check(input, compiled, policy, &sources, &mut found);
    }
    targets::underlays(input, &policies, &mut found);
    found
}

/// Reports whether two policies do the same with their matches.
fn has_same_action(one: &RoutingPolicy, other: &RoutingPolicy) -> bool {
    let mode = |policy: &RoutingPolicy| match policy.hops.len() {
        0 | 1 => HopMode::Path,
        _ => policy.hop_mode,
    };
    one.hops == other.hops
        && one.is_pool() == other.is_pool()
        && mode(one) == mode(other)
        && one.fail_policy.unwrap_or_default() == other.fail_policy.unwrap_or_default()
}

fn contradiction(first: &RoutingPolicy, second: &RoutingPolicy, source: &Source) -> Conflict {
    let what = what(source);
    Conflict {
        kind: ConflictKind::Contradictory,
        policies: vec![second.meta.id, first.meta.id],
        message: format!(
            "{:?} and {:?} both match {what} with priority {} and send it different ways; the older one, {:?}, wins. Give one of them another priority.",
            second.name, first.name, first.priority, first.name
        ),
        severity: Severity::Error,
    }
}

fn shadow(policy: &RoutingPolicy, sources: &[Source], before: &[&RoutingPolicy]) -> Conflict {
    let same = before.iter().all(|other| has_same_action(policy, other));
    let own: BTreeSet<&Source> = sources.iter().collect();
    let twin = before.iter().find(|other| same && other.sources().iter().collect::<BTreeSet<_>>() == own);
    let mut policies = vec![policy.meta.id];
    policies.extend(before.iter().map(|other| other.meta.id));
    let names: Vec<String> = before
        .iter()
        .take(5)
        .map(|other| format!("{:?} (priority {})", other.name, other.priority))
        .collect();
    let more = before.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = format!("{}{more}", names.join(", "));
    let priority = policy.priority;
    let (kind, severity, message) = match (twin, same) {
        (Some(_), _) => (
            ConflictKind::Duplicate,
            Severity::Info,
            format!(
                "{:?} (priority {priority}) repeats {names}: it matches the same and does the same.",
                policy.name
            ),
        ),
        (None, true) => (
            ConflictKind::Shadowed,
            Severity::Info,
            format!(
                "{:?} (priority {priority}) never decides: {names} before it matches all it matches, and does the same.",
                policy.name
            ),
        ),
        (None, false) => (
            ConflictKind::Shadowed,
            Severity::Warning,
            format!(
                "{:?} (priority {priority}) never decides: {names} before it matches all it matches.",
                policy.name
            ),
        ),
    };
    Conflict { kind, policies, message, severity }
}

fn what(source: &Source) -> String {
    match source {
        Source::All => "all traffic".to_owned(),
        Source::Interface(_) => format!("the interface {source}"),
        Source::Vlan(_) => format!("VLAN {source}"),
        Source::Subnet(_) => format!("the network {source}"),
        Source::Device(_) => format!("the device {source}"),
        Source::DeviceGroup(_) => format!("the device group {source}"),
        Source::Destination { .. } => format!("the destination {source}"),
        Source::Domain(_) => format!("the domain {source}"),
    }
}

//! Routing policies: which traffic takes which way, and what happens when the way is gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device::Device;
use super::device_group::DeviceGroup;
use super::policy_source::{self, Source, SourceType};
use super::tunnel::Tunnel;
use crate::change::Names;
use crate::edit::EditError;
use crate::id::{Id, IfName};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::text::{check_free_text, check_name, check_slug, text_enum};

/// Most hops of a policy; the dataplane has so many places in a pool.
pub const MAX_HOPS: usize = 16;

text_enum! {
    /// What happens when hops are unavailable.
    #[derive(Default)]
    pub enum FailPolicy {
        /// Block.
        #[default]
        Closed = "fail-closed",
        /// Skip unavailable hops as long as a vpn, proxy or mesh hop remains; never plain direct.
        Degraded = "fail-degraded",
        /// Take the default way.
        Open = "fail-open",
    }
}

text_enum! {
    /// How blocked traffic is answered.
    #[derive(Default)]
    pub enum Reject {
        /// With ICMP unreachable.
        #[default]
        Unreachable = "unreachable",
        /// Not at all.
        Drop = "drop",
    }
}

text_enum! {
    /// What stays on its leg of a pool.
    #[derive(Default)]
    pub enum Sticky {
        #[default]
        Flow = "flow",
        Source = "source",
        SourceDest = "source_dest",
    }
}

text_enum! {
    /// How several hops belong together.
    #[derive(Default)]
    pub enum HopMode {
        /// One after the other, each reached through the one before.
        #[default]
        Path = "path",
        /// The first that is available.
        Failover = "failover",
    }
}

text_enum! {
    pub enum HopType {
        Vpn = "vpn",
        Interface = "interface",
        Proxy = "proxy",
        MeshPeer = "mesh_peer",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum PolicyStatus {
        #[default]
        Disabled = "disabled",
        Active = "active",
        Degraded = "degraded",
        Fallback = "fallback",
        Blocked = "blocked",
        Error = "error",
    }
}

/// A leg of the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    pub r#type: HopType,
    /// Name of the tunnel, interface, proxy or mesh peer.
    pub target: String,
}

/// A routing policy. It steers traffic from the next apply on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoutingPolicy {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    /// The lowest number that matches wins; among equals the older policy.
    pub priority: i64,
    pub enabled: bool,
    pub source_type: SourceType,
    /// What is matched, after the source type: empty for `all`, else one value or several with commas.
    pub source_value: String,
    pub hops: Vec<Hop>,
    /// With several vpn hops: share new connections among them.
    pub splitting: bool,
    pub fail_policy: FailPolicy,
    pub reject: Reject,
    pub sticky: Sticky,
    pub hop_mode: HopMode,
    /// The policy ends then.
    pub expires_at: Option<Timestamp>,
    /// Not supported by this version.
    pub profile: Option<String>,
    /// Not supported by this version.
    pub chain: Option<String>,
    /// Not supported by this version.
    pub privacy_class: Option<String>,
}

impl Default for RoutingPolicy {
    fn default() -> RoutingPolicy {
        RoutingPolicy {
            meta: Meta::default(),
            name: String::new(),
            description: String::new(),
            priority: 1000,
            enabled: true,
            source_type: SourceType::All,
            source_value: String::new(),
            hops: Vec::new(),
            splitting: false,
            fail_policy: FailPolicy::Closed,
            reject: Reject::Unreachable,
            sticky: Sticky::Flow,
            hop_mode: HopMode::Path,
            expires_at: None,
            profile: None,
            chain: None,
            privacy_class: None,
        }
    }
}

/// What is known of a policy at work; shown beside what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PolicyLive {
    /// Installed and steering traffic.
    pub routing: bool,
    pub status: PolicyStatus,
    pub compiled_at: Option<Timestamp>,
    pub hits: Hits,
    pub active_hop: Option<Hop>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hits {
    pub packets: u64,
    pub bytes: u64,
}

impl RoutingPolicy {
    /// What it matches. Empty only for a row that never was validated.
    pub fn sources(&self) -> Vec<Source> {
        policy_source::parse(self.source_type, &self.source_value).unwrap_or_default()
    }

    /// Enabled and not expired.
    pub fn in_force(&self, now: Timestamp) -> bool {
        self.enabled && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether its vpn hops form a round-robin pool.
    pub fn is_pool(&self) -> bool {
        self.splitting && self.vpn_hops().count() > 1
    }

    pub fn vpn_hops(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().filter(|hop| hop.r#type == HopType::Vpn)
    }

    /// Which tunnel has to be carried by which hop.
    pub fn underlays(&self) -> BTreeMap<&str, &Hop> {
        if self.hop_mode == HopMode::Failover {
            return BTreeMap::new();
        }
        let vpn = |hop: &&Hop| hop.r#type == HopType::Vpn;
        if self.is_pool() {
            let uplink = self.hops.first().filter(|hop| hop.r#type == HopType::Interface);
            return uplink
                .into_iter()
                .flat_map(|up| self.vpn_hops().map(move |hop| (hop.target.as_str(), up)))
                .collect();
        }
        let pairs = self.hops.iter().zip(self.hops.iter().skip(1));
        pairs.filter(|(_, hop)| vpn(hop)).map(|(under, hop)| (hop.target.as_str(), under)).collect()
    }

    fn same_way(&self, other: &RoutingPolicy) -> bool {
        self.hops == other.hops
            && self.is_pool() == other.is_pool()
            && self.hop_mode == other.hop_mode
            && self.fail_policy == other.fail_policy
    }

    fn scope_keys(&self) -> impl Iterator<Item = String> {
        let (kind, priority) = (self.source_type, self.priority);
        self.sources().into_iter().map(move |source| format!("scope:{priority}:{kind}:{source}"))
    }

    fn validate_source(&self, state: &State, problems: &mut Problems) {
        let sources = match policy_source::parse(self.source_type, &self.source_value) {
            Ok(sources) => sources,
            Err(messages) => {
                for message in messages {
                    let code =
                        if message.contains("not supported") { code::NOT_SUPPORTED } else { code::FORMAT };
                    problems.add(code, "source_value", message);
                }
                return;
            }
        };
        for source in sources {
            match source {
                Source::Device(id) if !state.devices.contains(id) => {
                    problems.add(
                        code::UNKNOWN_REFERENCE,
                        "source_value",
                        format!("There is no device {id}."),
                    );
                }
                Source::DeviceGroup(id) if !state.device_groups.contains(id) => {
                    problems.add(
                        code::UNKNOWN_REFERENCE,
                        "source_value",
                        format!("There is no device group {id}."),
                    );
                }
                _ => {}
            }
        }
    }

    fn validate_hops(&self, state: &State, problems: &mut Problems) {
        if self.hops.len() > MAX_HOPS {
            problems.add(code::RANGE, "hops", format!("At most {MAX_HOPS} hops."));
        }
        let ordered = self.hop_mode == HopMode::Path;
        let mut seen = BTreeSet::new();
        for (index, hop) in self.hops.iter().enumerate() {
            let target = format!("hops[{index}].target");
            let kind = format!("hops[{index}].type");
            match hop.r#type {
                HopType::Interface => {
                    if let Err(error) = hop.target.parse::<IfName>() {
                        problems.add(code::FORMAT, &target, format!("Expected {}.", error.0));
                    }
                    if ordered && index > 0 {
                        problems.add(
                            code::ORDER,
                            kind,
                            "An interface may stand only first: it picks the uplink.",
                        );
                    }
                }
                HopType::Vpn => {
                    check_slug(&target, &hop.target, problems);
                    if state.tunnel_by_name(&hop.target).is_none() {
                        problems.warn(&target, format!("There is no tunnel {:?}: the hop is unavailable and the failure policy applies.", hop.target));
                    }
                }
                HopType::Proxy | HopType::MeshPeer => {
                    check_name(&target, &hop.target, problems);
                    if ordered && hop.r#type == HopType::Proxy && index + 1 < self.hops.len() {
                        problems.add(code::ORDER, kind, "A proxy may stand only last.");
                    }
                    problems.warn(&target, format!("This version has no hops of type {}: it is unavailable and the failure policy applies.", hop.r#type));
                }
            }
            if !seen.insert(hop) {
                problems.add(code::DUPLICATE, target, "This hop is given twice.");
            }
        }
    }

    fn check_scope(&self, state: &State) -> Result<(), EditError> {
        for key in self.scope_keys() {
            let mut others = state.routing_policies.with_key(&key);
            let other = others.find(|other| other.meta.id != self.meta.id && other.in_force(state.now()));
            if let Some(other) = other.filter(|other| !self.same_way(other)) {
                return Err(EditError::PolicyConflict {
                    policies: vec![other.meta.id],
                    reason: format!(
                        "The policy {:?} matches the same traffic with the same priority {} and sends it another way. Give one of them another priority.",
                        other.name, self.priority
                    ),
                });
            }
        }
        Ok(())
    }

    fn check_underlays(&self, state: &State) -> Result<(), EditError> {
        let own = self.underlays();
        let demand_of_others = |tunnel: &str| {
            let mut others = state.routing_policies.with_key(&underlay_key(tunnel));
            others.find(|other| other.meta.id != self.meta.id && other.in_force(state.now())).cloned()
        };
        for (tunnel, under) in &own {
            if let Some(other) = demand_of_others(tunnel)
                && other.underlays().get(tunnel).is_some_and(|have| have != under)
            {
                return Err(EditError::PolicyConflict {
                    policies: vec![other.meta.id],
                    reason: format!(
                        "The policy {:?} carries the tunnel {tunnel} over another way than {} {}: a tunnel has one underlay at a time.",
                        other.name, under.r#type, under.target
                    ),
                });
            }
            // Follow what carries what; back at the start means that a tunnel would carry itself.
            let mut policies = Vec::new();
            let mut carrier = (*under).clone();
            for _ in 0..=state.tunnels.len() + MAX_HOPS {
                if carrier.r#type != HopType::Vpn {
                    break;
                }
                if carrier.target == *tunnel {
                    return Err(EditError::PolicyConflict {
                        policies,
                        reason: format!("The tunnel {tunnel} would be carried inside itself."),
                    });
                }
                carrier = match own.get(carrier.target.as_str()) {
                    Some(under) => (*under).clone(),
                    None => match demand_of_others(&carrier.target) {
                        None => break,
                        Some(other) => {
                            policies.push(other.meta.id);
                            match other.underlays().get(carrier.target.as_str()) {
                                Some(under) => (*under).clone(),
                                None => break,
                            }
                        }
                    },
                };
            }
        }
        Ok(())
    }
}

fn underlay_key(tunnel: &str) -> String {
    format!("underlay:{tunnel}")
}

impl Resource for RoutingPolicy {
    const NOUN: &'static str = "routing_policy";
    const COLLECTION: &'static str = "routing_policies";
    const READ_ONLY: &'static [&'static str] = &["routing", "status", "compiled_at", "hits", "active_hop"];
    const REQUIRED: &'static [&'static str] = &["source_type"];

    fn label(&self) -> &str {
        &self.name
    }

    fn prepare(&mut self) {
        if self.name.is_empty() {
            self.name = format!("policy-{}", self.meta.slot);
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if !(0..=1_000_000).contains(&self.priority) {
            problems.add(code::RANGE, "priority", "Must be from 0 to 1000000.");
        }
        self.validate_source(state, problems);
        self.validate_hops(state, problems);
        if self.splitting && self.hop_mode == HopMode::Failover {
            problems.add(
                code::CONFLICT,
                "hop_mode",
                "Splitting shares traffic among the hops, failover takes one: choose one of them.",
            );
        }
        let unbuilt =
            [("profile", &self.profile), ("chain", &self.chain), ("privacy_class", &self.privacy_class)];
        for (field, value) in unbuilt {
            if value.is_some() {
                problems.not_supported(field, format!("The field {field}"));
            }
        }
        if self.expires_at.is_some_and(|end| end <= state.now()) {
            problems.warn("expires_at", "This time has passed: the policy matches nothing.");
        }
    }

    fn admit(&self, _before: Option<&Self>, state: &State) -> Result<(), EditError> {
        if !self.in_force(state.now()) {
            return Ok(());
        }
        self.check_scope(state)?;
        self.check_underlays(state)
    }

    fn refs(&self) -> Vec<Ref> {
        let sources = self.sources().into_iter().filter_map(|source| match source {
            Source::Device(id) => Some(Ref::new(Device::NOUN, id, "source_value", Hold::Firm)),
            Source::DeviceGroup(id) => Some(Ref::new(DeviceGroup::NOUN, id, "source_value", Hold::Firm)),
            _ => None,
        });
        let hops = self.hops.iter().enumerate().filter_map(|(index, hop)| {
            let kind = match hop.r#type {
                HopType::Vpn => Tunnel::NOUN,
                HopType::Proxy => "proxy",
                HopType::MeshPeer => "mesh_peer",
                HopType::Interface => return None,
            };
            Some(Ref::new(kind, &hop.target, format!("hops[{index}].target"), Hold::Loose))
        });
        sources.chain(hops).collect()
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        let noun = match input.get("source_type").and_then(Value::as_str) {
            Some("device") => Device::NOUN,
            Some("device_group") => DeviceGroup::NOUN,
            _ => return,
        };
        if let Some(Value::String(value)) = input.get_mut("source_value") {
            let resolved = |text: &str| names.id(noun, text.trim()).map_or(text.to_owned(), |id| id.to_string());
            *value = value.split(',').map(resolved).collect::<Vec<_>>().join(",");
        }
    }

    fn keys(&self, keys: &mut Keys) {
        if !self.enabled {
            return;
        }
        self.scope_keys().for_each(|key| keys.shared(key));
        self.underlays().keys().for_each(|tunnel| keys.shared(underlay_key(tunnel)));
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(PolicyLive::json_schema(generator))
    }
}

/// The order in which policies are tried: priority, then age.
pub fn precedence(policy: &RoutingPolicy) -> (i64, Timestamp, Id) {
    (policy.priority, policy.meta.created_at, policy.meta.id)
}

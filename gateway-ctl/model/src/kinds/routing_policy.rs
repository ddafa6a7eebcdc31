//! Routing policies: match of traffic, its hops, and the behaviour when they fail.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::chain::Chain;
use super::device::Device;
use super::device_group::DeviceGroup;
use super::hops::{self, check_hops, hop_refs};
pub use super::hops::{Hop, HopMode, HopType, MAX_HOPS};
use super::policy_source::{self, Source, SourceType};
use super::privacy_class::PrivacyClass;
use super::profile::Profile;
use super::tunnel::Tunnel;
use crate::bulk_edit::Names;
use crate::edit::EditError;
use crate::ending;
use crate::id::Id;
use crate::id_or_name::{check_reference, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Loss, Ref};
use crate::resource::{Keys, Meta, Resource, ref_key};
use crate::state::State;
use crate::validated::{check_free_text, check_name, text_enum};

text_enum! {
    /// Behaviour when hops are not usable.
    #[derive(Default)]
    pub enum FailPolicy {
        /// Block.
        #[default]
        Closed = "fail-closed",
        /// Skip unavailable hops as long as a vpn, proxy or mesh hop remains; never plain direct.
        Degraded = "fail-degraded",
        /// Take the default route.
        Open = "fail-open",
    }
}

text_enum! {
    /// Reply to blocked traffic.
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
    /// Scope of a sticky leg in a pool.
    #[derive(Default)]
    pub enum Sticky {
        #[default]
        Flow = "flow",
        Source = "source",
        SourceDest = "source_dest",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum PolicyStatus {
        #[default]
        Disabled = "disabled",
        /// Enabled, and not applied yet.
        Pending = "pending",
        Active = "active",
        Degraded = "degraded",
        Fallback = "fallback",
        Blocked = "blocked",
        Error = "error",
    }
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
    /// Value of the source type: empty for `all`, else one or several values with commas between them.
    pub source_value: String,
    pub hops: Vec<Hop>,
    /// With several vpn hops: share new connections among them.
    pub splitting: bool,
    /// Failure policy. Null: that of the profile, else `fail-closed`.
    pub fail_policy: Option<FailPolicy>,
    pub reject: Reject,
    /// Stickiness. Null: that of the profile, else `flow`.
    pub sticky: Option<Sticky>,
    pub hop_mode: HopMode,
    /// The policy ends then.
    pub expires_at: Option<Timestamp>,
    /// Time at which the policy was recorded as ended. From then on no clock makes it match again, unless `expires_at`
    /// changes.
    #[schemars(extend("readOnly" = true))]
    pub ended_at: Option<Timestamp>,
    /// Id or name of a route profile for fields that the policy itself does not set.
    pub profile: Option<String>,
    /// Id or name of a chain instead of `hops`.
    pub chain: Option<String>,
    /// Id or name of a privacy class: the policy fails at least as strictly as the class demands.
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
            fail_policy: None,
            reject: Reject::Unreachable,
            sticky: None,
            hop_mode: HopMode::Path,
            expires_at: None,
            ended_at: None,
            profile: None,
            chain: None,
            privacy_class: None,
        }
    }
}

/// Policy merged with its profile, chain and privacy class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectivePolicy {
    pub hops: Vec<Hop>,
    pub splitting: bool,
    pub hop_mode: HopMode,
    pub fail_policy: FailPolicy,
    pub sticky: Sticky,
    pub privacy_class: Option<String>,
}

/// Fields of a shown policy that are not stored.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct PolicyShown {
    #[serde(flatten)]
    live: PolicyLive,
    /// Null if the policy names neither a profile nor a chain nor a privacy class.
    effective: Option<EffectivePolicy>,
}

/// Live state of a policy, shown beside the stored fields.
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
    /// Returns the sources of the policy. Empty only for a row that was never validated.
    pub fn sources(&self) -> Vec<Source> {
        policy_source::parse(self.source_type, &self.source_value).unwrap_or_default()
    }

    /// Enabled and not expired.
    pub fn in_force(&self, now: Timestamp) -> bool {
        self.lifetime().is_in_force(now)
    }

    pub fn lifetime(&self) -> Lifetime {
        Lifetime { enabled: self.enabled, ended: self.ended_at.is_some(), expires_at: self.expires_at }
    }

    /// Reports whether the vpn hops form a round-robin pool.
    pub fn is_pool(&self) -> bool {
        hops::is_pool(&self.hops, self.splitting)
    }

    pub fn vpn_hops(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().filter(|hop| hop.r#type == HopType::Vpn)
    }

    /// Returns the hop that must be the underlay of each tunnel.
    pub fn underlays(&self) -> BTreeMap<&str, &Hop> {
        hops::underlays(&self.hops, self.splitting, self.hop_mode)
    }

    fn has_same_action(&self, other: &RoutingPolicy) -> bool {
        self.hops == other.hops
            && self.is_pool() == other.is_pool()
            && self.hop_mode == other.hop_mode
            && self.fail_policy.unwrap_or_default() == other.fail_policy.unwrap_or_default()
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
                    let refused = policy_source::is_refusal(&message);
                    let code = if refused { code::NOT_SUPPORTED } else { code::FORMAT };
                    problems.add(code, "source_value", message);
                }
                return;
            }
        };
        if let Some(cleared) = policy_source::without_host_bits(self.source_type, &self.source_value) {
            problems.warn("source_value", format!("Host bits were cleared: stored as {cleared}."));
        }
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

    fn check_scope(&self, state: &State) -> Result<(), EditError> {
        for key in self.scope_keys() {
            let mut others = state.routing_policies.with_key(&key);
            let other = others.find(|other| other.meta.id != self.meta.id && other.in_force(state.now()));
            if let Some(other) = other.filter(|other| !self.has_same_action(&state.resolved(other))) {
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
            let other = others.find(|other| other.meta.id != self.meta.id && other.in_force(state.now()));
            other.cloned().or_else(|| indirect_demand(state, tunnel, self.meta.id))
        };
        for (tunnel, under) in &own {
            if let Some(object) = state.tunnel_by_name(tunnel)
                && !object.uplink.allows(under)
            {
                return Err(EditError::PolicyConflict {
                    policies: vec![self.meta.id],
                    reason: format!(
                        "The policy {:?} carries the tunnel {tunnel} over {} {}, but its own setting says uplink {}: a tunnel has one underlay at a time.",
                        self.name, under.r#type, under.target, object.uplink
                    ),
                });
            }
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
            // Follows the underlays. A return to the start means that a tunnel would be its own underlay.
            let mut policies = Vec::new();
            let mut underlay = (*under).clone();
            for _ in 0..=state.tunnels.len() + MAX_HOPS {
                if underlay.r#type != HopType::Vpn {
                    break;
                }
                if underlay.target == *tunnel {
                    return Err(EditError::PolicyConflict {
                        policies,
                        reason: format!("The tunnel {tunnel} would be carried inside itself."),
                    });
                }
                underlay = match own.get(underlay.target.as_str()) {
                    Some(under) => (*under).clone(),
                    None => match demand_of_others(&underlay.target) {
                        None => break,
                        Some(other) => {
                            policies.push(other.meta.id);
                            match other.underlays().get(underlay.target.as_str()) {
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

/// Returns another policy in force whose profile or chain demands an underlay of the tunnel.
fn indirect_demand(state: &State, tunnel: &str, except: Id) -> Option<Arc<RoutingPolicy>> {
    let demands = |hops: &[Hop], splitting, mode| hops::underlays(hops, splitting, mode).contains_key(tunnel);
    let chains = state.chains.iter().filter(|chain| demands(&chain.way(), false, HopMode::Path));
    let of_chains = chains.flat_map(|chain| users(state, chain));
    let profiles = state.profiles.iter().filter(|profile| match state.referred::<Chain>(&profile.chain) {
        Some(chain) => demands(&chain.way(), false, HopMode::Path),
        None => {
            demands(&profile.hops, true, profile.hop_mode) || demands(&profile.hops, false, profile.hop_mode)
        }
    });
    let of_profiles = profiles.flat_map(|profile| users(state, profile));
    of_chains
        .chain(of_profiles)
        .filter(|policy| policy.meta.id != except && policy.in_force(state.now()))
        .map(|policy| state.resolved_arc(policy))
        .find(|policy| policy.underlays().contains_key(tunnel))
}

/// Refuses a tunnel whose own uplink differs from the underlay that a policy in force demands.
pub(crate) fn admit_uplink(tunnel: &Tunnel, state: &State) -> Result<(), EditError> {
    let stored = state.routing_policies.with_key(&underlay_key(&tunnel.name)).cloned();
    let demanding = stored.filter(|policy| policy.in_force(state.now()));
    // Policies that demand it through a profile or a chain agree, so one is enough.
    let demanding = demanding.chain(indirect_demand(state, &tunnel.name, Id::default()));
    let against: Vec<_> = demanding
        .filter(|policy| {
            policy.underlays().get(tunnel.name.as_str()).is_some_and(|under| !tunnel.uplink.allows(under))
        })
        .collect();
    let Some(first) = against.first() else { return Ok(()) };
    let mut policies: Vec<Id> = against.iter().map(|policy| policy.meta.id).collect();
    policies.dedup();
    Err(EditError::PolicyConflict {
        reason: format!(
            "The policy {:?} carries the tunnel {} over another way than its uplink {}: a tunnel has one underlay at a time.",
            first.name, tunnel.name, tunnel.uplink
        ),
        policies,
    })
}

/// The policies that name an object.
fn users<'a, R: Resource>(
    state: &'a State,
    row: &R,
) -> impl Iterator<Item = &'a Arc<RoutingPolicy>> + use<'a, R> {
    let targets = [Some(row.meta().id.to_string()), row.alias().map(str::to_owned)];
    targets
        .into_iter()
        .flatten()
        .flat_map(|target| state.routing_policies.with_key(&ref_key(R::NOUN, &target)))
}

/// Refuses a profile or chain with which policies in force would contradict each other.
pub(crate) fn admit_indirect<R: Resource>(row: &R, state: &State) -> Result<(), EditError> {
    for policy in users(state, row).filter(|policy| policy.in_force(state.now())) {
        let whole = state.resolved(policy);
        whole.check_scope(state)?;
        whole.check_underlays(state)?;
    }
    let targets = [Some(row.meta().id.to_string()), row.alias().map(str::to_owned)];
    for target in targets.into_iter().flatten() {
        for profile in state.profiles.with_key(&ref_key(R::NOUN, &target)) {
            admit_indirect::<Profile>(profile, state)?;
        }
    }
    Ok(())
}

fn underlay_key(tunnel: &str) -> String {
    format!("underlay:{tunnel}")
}

impl Resource for RoutingPolicy {
    const NOUN: &'static str = "routing_policy";
    const COLLECTION: &'static str = "routing_policies";
    const READ_ONLY: &'static [&'static str] =
        &["routing", "status", "compiled_at", "hits", "active_hop", "effective", "ended_at"];
    const REQUIRED: &'static [&'static str] = &["source_type"];

    fn label(&self) -> &str {
        &self.name
    }

    fn prepare(&mut self) {
        if self.name.is_empty() {
            self.name = format!("policy-{}", self.meta.slot);
        }
        if self.source_type == SourceType::Domain && !self.source_value.is_ascii() {
            self.source_value = policy_source::with_a_labels(&self.source_value);
        }
        if self.profile.is_none() {
            self.fail_policy.get_or_insert_default();
            self.sticky.get_or_insert_default();
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if !(0..=1_000_000).contains(&self.priority) {
            problems.add(code::RANGE, "priority", "Must be from 0 to 1000000.");
        }
        self.validate_source(state, problems);
        check_hops(&self.hops, self.hop_mode, self.splitting, state, problems);
        if self.splitting && self.hop_mode == HopMode::Failover {
            problems.add(
                code::CONFLICT,
                "hop_mode",
                "Splitting shares traffic among the hops, failover takes one: choose one of them.",
            );
        }
        check_reference::<Profile>("profile", &self.profile, state, problems);
        check_reference::<Chain>("chain", &self.chain, state, problems);
        check_reference::<PrivacyClass>("privacy_class", &self.privacy_class, state, problems);
        if self.chain.is_some() && !self.hops.is_empty() {
            problems.add(code::CONFLICT, "chain", "A chain stands in place of hops: give one of them.");
        }
        if self.chain.is_some() && self.splitting {
            problems.warn("splitting", "A chain is one way: there is nothing to share traffic among.");
        }
        if self.ended_at.is_some() || self.expires_at.is_some_and(|end| end <= state.now()) {
            problems.warn("expires_at", "This time has passed: the policy matches nothing.");
        }
    }

    fn admit(&self, _before: Option<&Self>, state: &State) -> Result<(), EditError> {
        if !self.in_force(state.now()) {
            return Ok(());
        }
        let whole = state.resolved(self);
        whole.check_scope(state)?;
        whole.check_underlays(state)
    }

    fn apply_consequences(mut self, state: &mut State) -> Result<(), EditError> {
        match policy_source::without_host_bits(self.source_type, &self.source_value) {
            Some(cleared) => {
                self.source_value = cleared;
                state.put(self)
            }
            None => Ok(()),
        }
    }

    fn refs(&self) -> Vec<Ref> {
        let sources = self.sources().into_iter().filter_map(|source| match source {
            Source::Device(id) => Some(Ref::new(Device::NOUN, id, "source_value", Hold::Firm)),
            Source::DeviceGroup(id) => Some(Ref::new(DeviceGroup::NOUN, id, "source_value", Hold::Firm)),
            _ => None,
        });
        let named = [
            reference::<Profile>("profile", &self.profile, Hold::Firm),
            reference::<Chain>("chain", &self.chain, Hold::Firm),
            reference::<PrivacyClass>("privacy_class", &self.privacy_class, Hold::Firm),
        ];
        sources.chain(hop_refs(&self.hops)).chain(named.into_iter().flatten()).collect()
    }

    fn loss_of(&self, noun: &str, target: &str, state: &State) -> Option<Loss> {
        Loss::of(self, noun, target, state)
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        ending::carry_over(input, before.expires_at, before.ended_at);
    }

    fn restored(&self, current: &State) -> Option<RoutingPolicy> {
        let id = self.meta.id;
        let present = [current.routing_policies.get(id), current.applied.policies.get(id)];
        let mut same_end =
            present.into_iter().flatten().filter(|policy| policy.expires_at == self.expires_at);
        let ended_at = same_end.find_map(|policy| policy.ended_at).filter(|_| self.ended_at.is_none())?;
        Some(RoutingPolicy { ended_at: Some(ended_at), ..self.clone() })
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        let noun = match input.get("source_type").and_then(Value::as_str) {
            Some("device") => Device::NOUN,
            Some("device_group") => DeviceGroup::NOUN,
            _ => return,
        };
        if let Some(Value::String(value)) = input.get_mut("source_value") {
            let resolved =
                |text: &str| names.id(noun, text.trim()).map_or(text.to_owned(), |id| id.to_string());
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
        Some(PolicyShown::json_schema(generator))
    }

    fn add_derived(&self, state: &State, shown: &mut Map<String, Value>) {
        let effective = match state.resolved(self) {
            Cow::Borrowed(_) => Value::Null,
            Cow::Owned(whole) => serde_json::json!(EffectivePolicy {
                hops: whole.hops,
                splitting: whole.splitting,
                hop_mode: whole.hop_mode,
                fail_policy: whole.fail_policy.unwrap_or_default(),
                sticky: whole.sticky.unwrap_or_default(),
                privacy_class: whole.privacy_class,
            }),
        };
        shown.insert("effective".into(), effective);
    }
}

/// Time during which a policy is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub enabled: bool,
    /// Its end was recorded.
    pub ended: bool,
    pub expires_at: Option<Timestamp>,
}

impl Lifetime {
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.enabled && !self.ended && self.expires_at.is_none_or(|end| now < end)
    }
}

/// The order in which policies are tried: priority, then age.
pub fn precedence(policy: &RoutingPolicy) -> (i64, Timestamp, Id) {
    (policy.priority, policy.meta.created_at, policy.meta.id)
}

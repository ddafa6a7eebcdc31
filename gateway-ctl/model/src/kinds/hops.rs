//! Hops of policies, profiles and chains, and their mode.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::privacy_class::PrivacyClass;
use super::profile::Profile;
use super::proxy::Proxy;
use super::routing_policy::{FailPolicy, RoutingPolicy};
use super::tunnel::Tunnel;
use crate::id::Id;
use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::Resource;
use crate::state::State;
use crate::validated::{check_name, check_slug, text_enum};

/// Maximum number of hops; the dataplane has as many slots in a pool.
pub const MAX_HOPS: usize = 16;

text_enum! {
    /// Relation of several hops.
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

impl HopType {
    /// Reports whether packets enter a tunnel by such a hop. These hops can share flows.
    pub const fn is_tunnel(self) -> bool {
        matches!(self, HopType::Vpn | HopType::MeshPeer)
    }
}

/// Hop of the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    pub r#type: HopType,
    /// Name of the tunnel, interface, proxy or mesh peer.
    pub target: String,
}

/// Reports whether the hops of tunnels and mesh peers form a round-robin pool.
pub fn is_pool(hops: &[Hop], splitting: bool) -> bool {
    splitting && hops.iter().filter(|hop| hop.r#type.is_tunnel()).count() > 1
}

/// Returns the hop that must be the underlay of each tunnel.
pub fn underlays(hops: &[Hop], splitting: bool, mode: HopMode) -> BTreeMap<&str, &Hop> {
    if mode == HopMode::Failover {
        return BTreeMap::new();
    }
    let vpn = |hop: &&Hop| hop.r#type == HopType::Vpn;
    if is_pool(hops, splitting) {
        let uplink = hops.first().filter(|hop| hop.r#type == HopType::Interface);
        return uplink
            .into_iter()
            .flat_map(|up| hops.iter().filter(vpn).map(move |hop| (hop.target.as_str(), up)))
            .collect();
    }
    let pairs = hops.iter().zip(hops.iter().skip(1));
    pairs.filter(|(_, hop)| vpn(hop)).map(|(under, hop)| (hop.target.as_str(), under)).collect()
}

/// Returns the hops before a tunnel, which are its underlays, nearest last.
pub fn before<'a>(hops: &'a [Hop], tunnel: &str, splitting: bool) -> &'a [Hop] {
    let at = if is_pool(hops, splitting) {
        usize::from(hops.first().is_some_and(|hop| hop.r#type == HopType::Interface))
    } else {
        hops.iter().position(|hop| hop.r#type == HopType::Vpn && hop.target == tunnel).unwrap_or(0)
    };
    &hops[..at]
}

/// Reports faults of the hops, and warns of missing targets.
pub(crate) fn check_hops(
    hops: &[Hop],
    mode: HopMode,
    splitting: bool,
    state: &State,
    problems: &mut Problems,
) {
    if hops.len() > MAX_HOPS {
        problems.add(code::RANGE, "hops", format!("At most {MAX_HOPS} hops."));
    }
    let ordered = mode == HopMode::Path;
    let is_behind = |index: usize| {
        let begins_with_uplink = hops.first().is_some_and(|hop| hop.r#type == HopType::Interface);
        ordered && index > 0 && (begins_with_uplink || !is_pool(hops, splitting))
    };
    let mut visited = BTreeSet::new();
    for (index, hop) in hops.iter().enumerate() {
        let target = format!("hops[{index}].target");
        let kind = format!("hops[{index}].type");
        match hop.r#type {
            HopType::Interface => {
                if let Err(error) = hop.target.parse::<IfName>() {
                    problems.add(code::FORMAT, &target, format!("Expected {}.", error.0));
                }
                if ordered && index > 0 {
                    let message = "An interface may stand only first: it picks the uplink.";
                    problems.add(code::ORDER, kind, message);
                }
            }
            HopType::Vpn => {
                check_slug(&target, &hop.target, problems);
                if state.tunnel_by_name(&hop.target).is_none() {
                    problems.warn(
                        &target,
                        format!(
                            "There is no tunnel {:?}: the hop is unavailable and the failure policy applies.",
                            hop.target
                        ),
                    );
                }
            }
            HopType::Proxy => {
                check_name(&target, &hop.target, problems);
                if ordered && index + 1 < hops.len() {
                    problems.add(code::ORDER, kind, "A proxy may stand only last.");
                }
                if state.find::<Proxy>(&hop.target).is_none() {
                    let message = format!(
                        "There is no proxy {:?}: it is unavailable and the failure policy applies.",
                        hop.target
                    );
                    problems.warn(&target, message);
                }
            }
            HopType::MeshPeer => {
                check_name(&target, &hop.target, problems);
                if is_behind(index) {
                    let message = "A mesh peer is reached through no other hop: behind one it is unavailable and the \
                                   failure policy applies.";
                    problems.warn(&target, message);
                }
            }
        }
        if !visited.insert(hop) {
            problems.add(code::DUPLICATE, target, "This hop is given twice.");
        }
    }
}

/// Returns the references of hops.
pub(crate) fn hop_refs(hops: &[Hop]) -> impl Iterator<Item = Ref> {
    hops.iter().enumerate().filter_map(|(index, hop)| {
        let kind = match hop.r#type {
            HopType::Vpn => <Tunnel as Resource>::NOUN,
            HopType::Proxy => <Proxy as Resource>::NOUN,
            HopType::MeshPeer => "mesh_peer",
            HopType::Interface => return None,
        };
        Some(Ref::new(kind, &hop.target, format!("hops[{index}].target"), Hold::Loose))
    })
}

impl State {
    /// The policy with everything that it takes from its profile, its chain and its privacy class.
    ///
    /// Returns the hops of the policy or, if it has none, those of its profile. Hops and mode come from the same
    /// object.
    pub fn resolved<'a>(&self, policy: &'a RoutingPolicy) -> Cow<'a, RoutingPolicy> {
        if policy.profile.is_none() && policy.chain.is_none() && policy.privacy_class.is_none() {
            return Cow::Borrowed(policy);
        }
        let mut whole = policy.clone();
        let profile = self.referred::<Profile>(&policy.profile);
        if whole.hops.is_empty() {
            let chain = if policy.chain.is_some() {
                &policy.chain
            } else if let Some(profile) = profile {
                whole.hops.clone_from(&profile.hops);
                whole.hop_mode = profile.hop_mode;
                whole.splitting |= profile.splitting;
                &profile.chain
            } else {
                &None
            };
            if let Some(chain) = self.referred::<Chain>(chain) {
                whole.hops = chain.way();
                whole.hop_mode = HopMode::Path;
                whole.splitting = false;
            }
        }
        if let Some(profile) = profile {
            whole.fail_policy = whole.fail_policy.or(Some(profile.fail_policy));
            whole.sticky = whole.sticky.or(Some(profile.sticky));
            whole.privacy_class = whole.privacy_class.or_else(|| profile.privacy_class.clone());
        }
        let floor = self.referred::<PrivacyClass>(&whole.privacy_class).map(|class| class.fail_policy_floor);
        let own = whole.fail_policy.unwrap_or_default();
        whole.fail_policy = Some(floor.map_or(own, |floor| own.stricter(floor)));
        whole.sticky = Some(whole.sticky.unwrap_or_default());
        Cow::Owned(whole)
    }

    /// The same, sharing the policy where nothing is taken.
    pub fn resolved_arc(&self, policy: &Arc<RoutingPolicy>) -> Arc<RoutingPolicy> {
        match self.resolved(policy) {
            Cow::Borrowed(_) => Arc::clone(policy),
            Cow::Owned(whole) => Arc::new(whole),
        }
    }

    /// Names of the mesh peers in hops: of policies, applied or not, of profiles, chains and bridges.
    pub fn mesh_peers_in_hops(&self) -> BTreeSet<&str> {
        let policies = self.routing_policies.iter().chain(self.applied.policies.iter());
        let hops = policies.flat_map(|policy| &policy.hops);
        let hops = hops.chain(self.profiles.iter().flat_map(|profile| &profile.hops));
        let hops = hops.chain(self.chains.iter().flat_map(|chain| &chain.hops));
        let hops = hops.chain(self.bridges.iter().filter_map(|bridge| bridge.target.as_ref()));
        hops.filter(|hop| hop.r#type == HopType::MeshPeer).map(|hop| hop.target.as_str()).collect()
    }

    /// Number of policies that an apply would change: edited, removed, or fed by a profile, chain or class that was.
    pub fn pending_policies(&self) -> usize {
        self.pending().count()
    }

    /// The policies that an apply would change.
    pub fn pending_policy_ids(&self) -> Vec<Id> {
        self.pending().collect()
    }

    fn pending(&self) -> impl Iterator<Item = Id> {
        let (stored, applied) = (&self.routing_policies, &self.applied.policies);
        let changed = stored.not_in(applied).filter(|id| !self.is_applied(*id));
        let removed = applied.not_in(stored).filter(|id| !stored.contains(*id));
        changed.chain(removed)
    }
}

impl FailPolicy {
    /// The one that lets less through.
    #[must_use]
    pub fn stricter(self, other: FailPolicy) -> FailPolicy {
        if other.strictness() > self.strictness() { other } else { self }
    }

    /// Returns 0 for the one that lets most through, up to 2.
    pub const fn strictness(self) -> u32 {
        match self {
            FailPolicy::Open => 0,
            FailPolicy::Degraded => 1,
            FailPolicy::Closed => 2,
        }
    }
}

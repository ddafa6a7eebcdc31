//! Upstreams of DNS queries whose policy's profile configures DNS. The policy alone decides the egress.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Tunnel;
use gateway_model::kinds::profile::{Profile, ProfileDnsMode};

use crate::compile::{Compiled, Input, Leg};
use crate::host_egress::HostEgress;
use crate::indexes::{LegId, Rank};

/// Upstreams for names without a forwarder.
#[derive(Clone, Debug, PartialEq)]
pub enum NameServers {
    /// As for everything else.
    Usual,
    /// Those of a tunnel.
    Inside(Vec<IpAddr>),
    /// Those that the profile names.
    Of(Arc<Profile>),
}

/// Returns the upstreams of queries that use the egress of the policy with this rank. With the name servers of tunnels,
/// the egress becomes that of one tunnel: each tunnel of a pool has its own.
pub fn of_policy(
    input: &Input<'_>,
    compiled: &Compiled,
    rank: Option<Rank>,
    outgoing: HostEgress,
) -> (HostEgress, NameServers) {
    let Some(profile) = profile_of(input, compiled, rank) else { return (outgoing, NameServers::Usual) };
    match (profile.dns.mode, &outgoing) {
        (ProfileDnsMode::Inherit, _) | (_, HostEgress::Blocked(_)) => (outgoing, NameServers::Usual),
        (ProfileDnsMode::Custom, _) => (outgoing, NameServers::Of(profile.clone())),
        // No tunnel is taken.
        (ProfileDnsMode::Tunnel, HostEgress::Default) => (outgoing, NameServers::Usual),
        (ProfileDnsMode::Tunnel, HostEgress::Legs(legs)) => {
            let mut inside = legs.iter().map(|leg| (*leg, inside(input, compiled, *leg)));
            match inside.find(|(_, servers)| !servers.is_empty()) {
                Some((leg, servers)) => (HostEgress::Legs(vec![leg]), NameServers::Inside(servers)),
                None => (without(&profile.name), NameServers::Usual),
            }
        }
        (ProfileDnsMode::Tunnel, HostEgress::Proxy { .. }) => (without(&profile.name), NameServers::Usual),
    }
}

fn without(profile: &str) -> HostEgress {
    HostEgress::Blocked(format!("the way of the profile {profile} has no name servers"))
}

/// The profile that a policy names, or that is the policy.
fn profile_of<'a>(input: &Input<'a>, compiled: &Compiled, rank: Option<Rank>) -> Option<&'a Arc<Profile>> {
    let (state, id) = (input.state, compiled.policy(rank?)?.id);
    if let Some(profile) = state.profiles.get(id) {
        return Some(profile);
    }
    // What was applied counts for the policy; profiles count as they are, like all that answers names.
    let named = match (state.applied.policies.get(id), state.exceptions.get(id)) {
        (Some(policy), _) => &policy.profile,
        (None, Some(exception)) => &exception.profile,
        (None, None) => return None,
    };
    state.referred::<Profile>(named)
}

fn inside(input: &Input<'_>, compiled: &Compiled, leg: LegId) -> Vec<IpAddr> {
    let id = compiled.legs.get(leg).and_then(Leg::tunnel);
    let tunnel: Option<&Arc<Tunnel>> = id.and_then(|id| input.state.tunnels.get(id));
    // The list may contain search domains.
    tunnel.map(|tunnel| tunnel.dns.iter().filter_map(|text| text.parse().ok()).collect()).unwrap_or_default()
}

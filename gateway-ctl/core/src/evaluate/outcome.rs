//! Outcome of a verdict: what becomes of the packet, read once. Its decision, its way and its words follow from it.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::Mark;
use gateway_common::wire::{Choice, ChoiceKind};
use gateway_model::kinds::routing_policy::{Hop, HopType};
use serde_json::json;

use super::evaluation::Decision;
use super::explanation::{failure, hops_down, leg_name, legs_of, not_for_the_proxy};
use super::route::{Exit, Kernel};
use crate::compile::{Compiled, CompiledPolicy, DefaultUplink, Input, Leg};
use crate::indexes::{LegId, ProxyIndex};
use crate::phrase::Phrase;

/// Interface by which a packet leaves, or why none takes it at present. `None`: the verdict has no mark to follow.
type Way = Option<Result<String, String>>;

/// Fate of a packet.
#[derive(Debug)]
enum Fate {
    /// It stays on this host or on the LAN.
    Local,
    /// It is blocked, whatever hops work.
    Blocked,
    /// No hop of the policy takes it, and the policy does not fail open.
    Failed,
    /// The policy fails less strictly than the privacy classes of the device allow.
    BelowFloor,
    /// It would take the default route, but all uplinks are disabled.
    NoUplink,
    /// It takes the default route.
    Default(Way),
    /// A proxy takes it.
    Proxy(Way),
    /// A tunnel or an uplink takes it.
    Leg(Way),
}

/// Outcome of a verdict on a packet, with what explains it.
pub(super) struct Outcome<'a> {
    input: &'a Input<'a>,
    compiled: &'a Compiled,
    packet: &'a IpPacket,
    verdict: &'a Verdict,
    /// Policy that decided.
    pub policy: Option<&'a CompiledPolicy>,
    /// Routing table that the packet takes.
    pub table: Option<u32>,
    fate: Fate,
}

impl<'a> Outcome<'a> {
    /// Reads the verdict on a packet to this destination.
    pub(super) fn of(
        input: &'a Input<'a>,
        compiled: &'a Compiled,
        packet: &'a IpPacket,
        destination: IpAddr,
        verdict: &'a Verdict,
    ) -> Outcome<'a> {
        let is_local = is_local(verdict.reason);
        let kernel = Kernel::new(compiled, input.facts);
        let exit = (verdict.action == Action::Mark && !is_local)
            .then(|| kernel.follow(Mark(verdict.mark), packet.ipv6));
        let table = exit.as_ref().and_then(|exit| exit.table);
        let refusal = kernel.refusal(Mark(verdict.mark), destination);
        let way = exit.map(|Exit { out, .. }| refusal.map_or(out, Err));
        let fate = fate(verdict.reason, compiled.legs.default, way);
        Outcome { input, compiled, packet, verdict, policy: compiled.policy_of(verdict), fate, table }
    }

    pub(super) fn is_local(&self) -> bool {
        matches!(self.fate, Fate::Local)
    }

    pub(super) fn decision(&self) -> Decision {
        match &self.fate {
            Fate::Local | Fate::Default(_) => Decision::Direct,
            Fate::Blocked | Fate::Failed | Fate::BelowFloor | Fate::NoUplink => Decision::Block,
            Fate::Proxy(Some(Ok(_))) => Decision::Tunnel,
            Fate::Leg(Some(Ok(_))) if self.is_by_uplink() => Decision::Direct,
            Fate::Leg(Some(Ok(_))) => Decision::Tunnel,
            Fate::Proxy(_) | Fate::Leg(_) => Decision::Block,
        }
    }

    /// Returns how the packet leaves: `local`, `default`, `proxy:…`, `vpn:…` or `interface:…`.
    pub(super) fn via(&self) -> Option<String> {
        match &self.fate {
            Fate::Local => Some("local".to_owned()),
            Fate::Default(_) => Some("default".to_owned()),
            Fate::Proxy(Some(Ok(_))) => Some(format!("proxy:{}", self.proxy().unwrap_or_default())),
            Fate::Leg(Some(Ok(_))) => Some(format!("{}:{}", self.leg_kind(), self.leg_name())),
            Fate::Blocked | Fate::Failed | Fate::BelowFloor | Fate::NoUplink => None,
            Fate::Proxy(_) | Fate::Leg(_) => None,
        }
    }

    /// Returns the interface by which the packet leaves this host.
    pub(super) fn interface(&self) -> Option<String> {
        match &self.fate {
            Fate::Default(way) | Fate::Proxy(way) | Fate::Leg(way) => way.clone()?.ok(),
            Fate::Local | Fate::Blocked | Fate::Failed | Fate::BelowFloor | Fate::NoUplink => None,
        }
    }

    /// Returns the legs among which flows like this are divided, by name.
    pub(super) fn ways(&self) -> Vec<String> {
        let leaves = matches!(self.fate, Fate::Leg(_) | Fate::Proxy(_));
        let legs = self.choice().filter(|_| leaves).map(legs_of).unwrap_or_default();
        legs.into_iter().flatten().map(|leg| leg_name(self.input, self.compiled, leg)).collect()
    }

    /// Returns the proxy that takes the packet.
    pub(super) fn taken_by(&self) -> Option<&'a str> {
        self.proxy().filter(|_| matches!(self.fate, Fate::Proxy(_)))
    }

    /// Returns the hop of the policy that takes the packet.
    pub(super) fn hop(&self) -> Option<Hop> {
        let number = self.choice().and_then(|choice| ProxyIndex::new(choice.proxy));
        let mut hops = self.policy?.hops.iter();
        let hop = match &self.fate {
            Fate::Proxy(_) => hops.find(|hop| hop.proxy == number),
            Fate::Leg(_) => hops.find(|hop| hop.leg == LegId::new(self.verdict.leg)),
            _ => None,
        };
        hop.map(|hop| hop.hop.clone())
    }

    /// Returns what there is to say beside the policy. `because` is the reason of the verdict.
    pub(super) fn clause(&self, because: &Phrase) -> Option<Phrase> {
        let unless_policy = || self.policy.is_none().then(|| because.clone());
        let failure = || self.policy.map(|policy| self.failure(policy));
        match &self.fate {
            Fate::Local | Fate::Blocked => unless_policy(),
            Fate::Failed => failure(),
            Fate::BelowFloor => failure().map(|failure| {
                let text = format!("{}, but {}", failure.text, because.text);
                Phrase::new("below_floor", [("failure", json!(failure))], text)
            }),
            Fate::NoUplink => Some(Phrase::new("uplinks_disabled", [], "all uplinks are disabled")),
            Fate::Default(_) => failure().or_else(unless_policy),
            Fate::Proxy(Some(Err(reason))) => {
                let name = self.proxy().unwrap_or_default();
                let text = format!("the proxy {name} is chosen, but {reason}");
                Some(unreachable_egress("proxy", name, reason, text))
            }
            Fate::Leg(Some(Err(reason))) => {
                let name = self.leg_name();
                let text = format!("{name} is chosen, but {reason}");
                Some(unreachable_egress(&self.leg_kind(), &name, reason, text))
            }
            // The proxy works, and this is none of the traffic that it takes.
            Fate::Leg(_) if self.proxy().is_some() => failure(),
            Fate::Proxy(_) | Fate::Leg(_) => {
                self.policy.and_then(|policy| hops_down(policy.hops.iter().filter(|hop| !hop.usable)))
            }
        }
    }

    /// Returns why a packet by the default route does not leave at present. An added route would let it out: it is not
    /// reported as blocked.
    pub(super) fn missing_route(&self) -> Option<&str> {
        match &self.fate {
            Fate::Default(Some(Err(reason))) => Some(reason),
            _ => None,
        }
    }

    fn choice(&self) -> Option<&'a Choice> {
        self.policy.map(|policy| if self.packet.ipv6 { &policy.v6 } else { &policy.v4 })
    }

    /// Returns the proxy of the policy.
    fn proxy(&self) -> Option<&'a str> {
        let choice = self.choice().filter(|choice| choice.kind() == ChoiceKind::Proxy)?;
        ProxyIndex::new(choice.proxy).map(|proxy| self.compiled.proxy_name(proxy))
    }

    /// Returns why no hop of the policy takes the packet.
    fn failure(&self, policy: &CompiledPolicy) -> Phrase {
        match self.proxy() {
            Some(proxy) => not_for_the_proxy(policy, proxy, self.packet),
            None => failure(policy, self.packet.ipv6),
        }
    }

    fn leg(&self) -> Option<&'a Leg> {
        self.compiled.legs.get(LegId::new(self.verdict.leg)?)
    }

    fn is_by_uplink(&self) -> bool {
        self.leg().is_some_and(Leg::is_uplink)
    }

    fn leg_name(&self) -> String {
        LegId::new(self.verdict.leg).map_or_else(String::new, |leg| leg_name(self.input, self.compiled, leg))
    }

    fn leg_kind(&self) -> String {
        self.leg().map_or(HopType::Vpn, Leg::hop_type).to_string()
    }
}

fn is_local(reason: Reason) -> bool {
    matches!(fate(reason, DefaultUplink::Nowhere, None), Fate::Local)
}

/// Returns what becomes of a packet with a verdict of this reason. A reason that is missing here does not compile.
fn fate(reason: Reason, default: DefaultUplink, way: Way) -> Fate {
    match reason {
        Reason::ToGateway | Reason::ToLan | Reason::LinkLocal | Reason::ForcedDns | Reason::ForcedNtp => {
            Fate::Local
        }
        Reason::PolicyReject | Reason::PolicyDrop => Fate::Failed,
        Reason::FloorReject => Fate::BelowFloor,
        Reason::PolicyDirect | Reason::NoPolicy if default == DefaultUplink::Nowhere => Fate::NoUplink,
        Reason::PolicyDirect | Reason::NoPolicy => Fate::Default(way),
        Reason::PolicyProxy => Fate::Proxy(way),
        Reason::PolicyEgress => Fate::Leg(way),
        Reason::NotIp
        | Reason::Malformed
        | Reason::NoPlan
        | Reason::ToGatewayDenied
        | Reason::Spoofed
        | Reason::UnknownInterface
        | Reason::DeviceBlocked
        | Reason::TrustLanDenied
        | Reason::TrustInternetDenied
        | Reason::ForcedDnsReject
        | Reason::NoPolicyReject
        | Reason::PolicyEnded
        | Reason::PolicyReset
        | Reason::GuardUnmarked
        | Reason::GuardWrongEgress
        | Reason::GuardSource
        | Reason::DotBlocked
        | Reason::DohBlocked
        | Reason::QuicBlocked
        | Reason::Ipv6Blocked
        | Reason::StunBlocked
        | Reason::DiscoveryDropped
        | Reason::AdminDenied
        | Reason::QuicHeld
        | Reason::WrongIngress => Fate::Blocked,
    }
}

fn unreachable_egress(kind: &str, name: &str, reason: &str, text: String) -> Phrase {
    let params = [("kind", json!(kind)), ("target", json!(name)), ("reason", json!(reason))];
    Phrase::new("egress_unreachable", params, text)
}

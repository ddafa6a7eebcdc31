//! Verdicts in words.

use std::collections::BTreeSet;

use gateway_common::classify::{ICMP, ICMPV6, IpPacket, UDP};
use gateway_common::verdict::Reason;
use gateway_common::wire::Choice;
use gateway_model::kinds::hops::{Hop, HopType};
use gateway_model::kinds::routing_policy::FailPolicy;

use serde_json::{Value, json};

use super::evaluation::{Decision, FamilyVerdict};
use crate::compile::{Compiled, CompiledPolicy, HopState, Input};
use crate::indexes::LegId;
use crate::phrase::Phrase;

/// Result and reason for one address family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explanation {
    /// `BLOCKED`, `TUNNEL wg-a (vpn)`, `DIRECT`.
    pub head: String,
    /// The policy that won, if one did.
    pub policy: Option<Phrase>,
    /// Additional clause.
    pub clause: Option<Phrase>,
}

impl Explanation {
    /// Returns the phrases of the reason.
    pub(crate) fn phrases(&self) -> Vec<Phrase> {
        [&self.policy, &self.clause].into_iter().flatten().cloned().collect()
    }

    /// Returns the reason in English.
    pub(crate) fn reason(&self) -> String {
        let texts = [&self.policy, &self.clause].into_iter().flatten();
        texts.map(|phrase| phrase.text.as_str()).collect::<Vec<_>>().join("; ")
    }
}

/// One sentence for one family or both.
pub(super) fn sentence(who: &str, families: &[(&str, &Explanation)]) -> String {
    match families {
        [(_, four), (_, six)] if four != six => {
            if four.policy.is_some() && four.policy == six.policy {
                let clauses = [&four.clause, &six.clause].into_iter().flatten();
                let clauses: BTreeSet<&str> = clauses.map(|clause| clause.text.as_str()).collect();
                let clauses: String = clauses.into_iter().map(|clause| format!("; {clause}")).collect();
                let policy = four.policy.as_ref().map_or("", |policy| policy.text.as_str());
                return format!("{who} -> {}, but IPv6 {}: {policy}{clauses}", four.head, six.head);
            }
            format!("{who} -> {}: {}; but IPv6 {}: {}", four.head, four.reason(), six.head, six.reason())
        }
        [(_, words), ..] => format!("{who} -> {}: {}", words.head, words.reason()),
        [] => format!("{who} -> BLOCKED: nothing was judged"),
    }
}

/// `policy "vpn-only" (priority 10, fail-closed) matched`
pub(super) fn policy_matched(policy: &CompiledPolicy) -> Phrase {
    let name = json!(policy.name);
    if let Some(end) = policy.exception_until {
        let text = format!("the exception {:?} holds until {end:.0}", policy.name);
        return Phrase::new("exception_holds", [("name", name), ("until", json!(format!("{end:.0}")))], text);
    }
    let CompiledPolicy { priority, fail_policy, .. } = policy;
    let text = format!("policy {:?} (priority {priority}, {fail_policy}) matched", policy.name);
    let params =
        [("name", name), ("priority", json!(priority)), ("fail_policy", json!(fail_policy.to_string()))];
    Phrase::new("policy_matched", params, text)
}

/// `vpn:wg-a is down (no handshake for 192 s)`
fn hop_down(hop: &HopState) -> Phrase {
    down(hop, &hop_name(hop))
}

/// `vpn:wg-a is down (no handshake for 192 s), proxy:office is down`. None if all are usable.
pub(super) fn hops_down<'a>(hops: impl Iterator<Item = &'a HopState>) -> Option<Phrase> {
    all_down(hops.map(hop_down).collect())
}

/// `tunnel wg-a is down (no handshake for 192 s)`. None if all are usable.
pub(crate) fn hops_down_in_words<'a>(hops: impl Iterator<Item = &'a HopState>) -> Option<Phrase> {
    all_down(hops.map(|hop| down(hop, &hop_words(&hop.hop))).collect())
}

fn all_down(hops: Vec<Phrase>) -> Option<Phrase> {
    if hops.is_empty() {
        return None;
    }
    let texts: Vec<&str> = hops.iter().map(|hop| hop.text.as_str()).collect();
    let text = texts.join(", ");
    let params = [("hops", json!(hops)), ("none_usable", json!(false)), ("fails_open", json!(false))];
    Some(Phrase::new("hops_down", params, text))
}

fn down(hop: &HopState, name: &str) -> Phrase {
    let state = if hop.leg.is_none() && hop.proxy.is_none() { "unavailable" } else { "down" };
    let repeated = format!("it is {state} ");
    let short = hop.reason.strip_prefix(&repeated).or_else(|| hop.reason.strip_prefix("it is "));
    let reason = short.unwrap_or(&hop.reason);
    let params = [
        ("kind", json!(hop.hop.r#type.to_string())),
        ("target", json!(hop.hop.target)),
        ("state", json!(state)),
        ("reason", json!(reason)),
    ];
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    Phrase::new("hop_down", params, format!("{name} is {state}{reason}"))
}

/// Kind and name of a hop as prose has them: `tunnel wg-a`.
pub(crate) fn hop_words(hop: &Hop) -> String {
    let kind = match hop.r#type {
        HopType::Vpn => "tunnel",
        HopType::Interface => "interface",
        HopType::Proxy => "proxy",
        HopType::MeshPeer => "mesh peer",
    };
    format!("{kind} {}", hop.target)
}

pub(super) fn hop_name(hop: &HopState) -> String {
    format!("{}:{}", hop.hop.r#type, hop.hop.target)
}

/// The name of a leg as policies write it: that of the tunnel or of the uplink.
pub(crate) fn leg_name(input: &Input<'_>, compiled: &Compiled, number: LegId) -> String {
    match compiled.legs.get(number) {
        None => format!("leg {number}"),
        Some(leg) => leg.name(input.state).to_owned(),
    }
}

/// The legs of a choice, each once. `None` is the default route to a proxy.
pub(crate) fn legs_of(choice: &Choice) -> BTreeSet<Option<LegId>> {
    LegId::of_choice(choice).collect()
}

/// Returns the reason for which traffic takes the failure policy although the proxy works.
pub(super) fn not_for_the_proxy(policy: &CompiledPolicy, proxy: &str, packet: &IpPacket) -> Phrase {
    let (protocol, what) = match packet.protocol {
        UDP => (json!("UDP"), "UDP"),
        ICMP | ICMPV6 => (json!("ICMP"), "ICMP"),
        _ => (Value::Null, "this protocol"),
    };
    let fails_open = policy.fail_policy == FailPolicy::Open;
    let text = format!("the proxy {proxy} does not take {what}");
    let text = if fails_open { format!("{text}, and the policy fails open") } else { text };
    let params = [("proxy", json!(proxy)), ("protocol", protocol), ("fails_open", json!(fails_open))];
    Phrase::new("not_for_proxy", params, text)
}

/// Returns the reason for which the hops of a policy end in its failure policy.
pub(super) fn failure(policy: &CompiledPolicy, ipv6: bool) -> Phrase {
    let family = if ipv6 { "IPv6" } else { "IPv4" };
    let down: Vec<&HopState> = policy.hops.iter().filter(|hop| !hop.usable).collect();
    if policy.exception_until.is_some() && policy.hops.is_empty() {
        let text = "the device leaves by the default route, past its policies";
        return Phrase::new("exception_direct", [], text);
    }
    let fails_open = policy.fail_policy == FailPolicy::Open;
    let open = ("fails_open", json!(fails_open));
    let mut phrase = match (policy.hops.as_slice(), down.as_slice()) {
        ([], _) => Phrase::new("no_hops", [open], "it has no hops"),
        (hops, []) => {
            let names: Vec<String> = hops.iter().map(hop_name).collect();
            let params = [("hops", json!(names)), ("family", json!(family)), open];
            Phrase::new("no_family", params, format!("{} has no way for {family}", names.join(", ")))
        }
        (hops, down) => {
            let are_all = hops.len() == down.len();
            let down: Vec<Phrase> = down.iter().map(|hop| hop_down(hop)).collect();
            let words: Vec<&str> = down.iter().map(|hop| hop.text.as_str()).collect();
            let text = match (hops.len(), are_all) {
                (1, _) => format!("its only hop {}", words.join(", ")),
                (_, true) => format!("none of its hops is usable: {}", words.join(", ")),
                (_, false) => words.join(", "),
            };
            let params = [("hops", json!(down)), ("none_usable", json!(are_all)), open];
            Phrase::new("hops_down", params, text)
        }
    };
    if fails_open {
        phrase.text += ", and it fails open";
    }
    phrase
}

/// Phrase for a verdict without a policy, or before one.
pub(crate) fn reason(reason: Reason, class: Option<&str>) -> Phrase {
    let text = text_of(reason, class);
    match (reason, class) {
        (Reason::TrustLanDenied, None) => Phrase::new("unknown_host_lan", [], text),
        (Reason::TrustInternetDenied, None) => Phrase::new("unknown_host_internet", [], text),
        _ => Phrase::of_reason(reason, [("trust_class", json!(class))], text),
    }
}

fn text_of(reason: Reason, class: Option<&str>) -> String {
    // Only a host that is no device has no class.
    let is_unknown = class.is_none();
    let class = class.unwrap_or("none");
    match reason {
        Reason::NotIp => "it is no IP packet".to_owned(),
        Reason::Malformed => "the packet is malformed".to_owned(),
        Reason::NoPlan => "no plan is live: everything is blocked".to_owned(),
        Reason::ToGateway => "the destination is the gateway itself".to_owned(),
        Reason::ToLan => "the destination is on the LAN".to_owned(),
        Reason::LinkLocal => "the destination is multicast, broadcast or link-local".to_owned(),
        Reason::ToGatewayDenied => {
            "the destination is an address of the gateway that hosts of the LAN may not use".to_owned()
        }
        Reason::Spoofed => "the source is not an address of a host on that LAN".to_owned(),
        Reason::UnknownInterface => "the plan does not know the interface: everything is blocked".to_owned(),
        Reason::DeviceBlocked => "the device is blocked".to_owned(),
        Reason::TrustLanDenied if is_unknown => {
            "it is no device, and the setting network.unknown_hosts keeps it off other networks of the LAN"
                .to_owned()
        }
        Reason::TrustInternetDenied if is_unknown => {
            "it is no device, and the setting network.unknown_hosts keeps it off the internet".to_owned()
        }
        Reason::TrustLanDenied => format!("its trust class {class:?} keeps it off other networks of the LAN"),
        Reason::TrustInternetDenied => format!("its trust class {class:?} keeps it off the internet"),
        Reason::ForcedDns => "it asks a resolver, and the one of the gateway answers in its place".to_owned(),
        Reason::ForcedDnsReject => {
            "it asks another resolver encrypted, which its privacy settings do not allow".to_owned()
        }
        Reason::NoPolicy => "no policy matched".to_owned(),
        Reason::NoPolicyReject => {
            format!("no policy matched, and its trust class {class:?} lets only policies send it anywhere")
        }
        Reason::PolicyEgress
        | Reason::PolicyProxy
        | Reason::PolicyDirect
        | Reason::PolicyReject
        | Reason::PolicyDrop => "a policy matched".to_owned(),
        Reason::PolicyEnded => "the policy that matched has ended".to_owned(),
        Reason::PolicyReset => "the tunnel of the connection takes it no longer".to_owned(),
        Reason::GuardUnmarked | Reason::GuardWrongEgress | Reason::GuardSource => {
            "the guard stopped it".to_owned()
        }
        Reason::DotBlocked => "DNS over TLS and QUIC to other resolvers is blocked for it".to_owned(),
        Reason::DohBlocked => {
            "DNS over HTTPS is blocked for it, and the address is one of a public resolver".to_owned()
        }
        Reason::QuicBlocked => "QUIC is blocked for it".to_owned(),
        Reason::Ipv6Blocked => "IPv6 is blocked for it".to_owned(),
        Reason::StunBlocked => {
            "STUN and TURN are blocked for it, or may not leave by the default route".to_owned()
        }
        Reason::DiscoveryDropped => "LAN discovery does not leave the LAN".to_owned(),
        Reason::ForcedNtp => {
            "it asks a time server, and the one of the gateway answers in its place".to_owned()
        }
        Reason::AdminDenied => {
            format!("its trust class {class:?} does not let it administer the gateway")
        }
        Reason::FloorReject => {
            "its policy fails less strictly than the privacy classes of the device allow".to_owned()
        }
        Reason::QuicHeld => {
            "DNS over HTTPS is blocked for it, and QUIC waits until the name of the server is known"
                .to_owned()
        }
        Reason::WrongIngress => "it is for an address of another tunnel".to_owned(),
    }
}

/// The head of a sentence.
pub(super) fn head(verdict: &FamilyVerdict) -> String {
    match (verdict.decision, verdict.local, verdict.ways.as_slice()) {
        (_, true, _) => "LOCAL".to_owned(),
        (Decision::Block, ..) => "BLOCKED".to_owned(),
        (Decision::Tunnel, _, ways) if verdict.proxy.is_some() => {
            let by = match ways {
                [] => String::new(),
                [one] => format!(" by {one}"),
                several => format!(" by one of {}", several.join(", ")),
            };
            format!("PROXY {}{by}", verdict.proxy.as_deref().unwrap_or_default())
        }
        (Decision::Tunnel, _, [one]) => format!("TUNNEL {one} (vpn)"),
        (Decision::Tunnel, _, several) => format!("TUNNEL one of {} (vpn)", several.join(", ")),
        (Decision::Direct, _, []) => "DIRECT".to_owned(),
        (Decision::Direct, _, ways) => format!("DIRECT by {}", ways.join(", ")),
    }
}

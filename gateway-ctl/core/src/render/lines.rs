//! Single entries of a plan as lines of text.

use gateway_common::wire::{
    Choice, ChoiceKind, DeviceValue, InterfaceValue, LocalKind, LocalValue, SourceKind, Sticky, device_flags,
    plan_flags,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::Compiled;
use crate::indexes::{LegId, ProxyIndex, Rank};
use crate::plan::{Family, Plan, RouteValue, RuleAction, names};

/// `#0 "vpn-only"`
pub(super) fn rank(compiled: &Compiled, rank: u32) -> String {
    let Some(rank) = Rank::of_wire(rank) else { return "no policy".to_owned() };
    match (rank, compiled.policy(rank)) {
        (rank, Some(policy)) => format!("#{rank} {:?}", policy.name),
        (rank, None) => format!("#{rank}"),
    }
}

pub(super) fn header(compiled: &Compiled) -> String {
    let header = &compiled.plan.dataplane.header;
    let unmatched =
        if header.flags & plan_flags::UNMATCHED_REJECT != 0 { "rejected" } else { "the default route" };
    format!(
        "all traffic -> {}; unmatched: {unmatched}; one of {} new flows reported",
        rank(compiled, header.all),
        header.sample_every
    )
}

pub(super) fn device(compiled: &Compiled, value: &DeviceValue) -> String {
    format!("device {}: {}{}", value.number, rank(compiled, value.rank), flags(value.flags, ""))
}

/// Limits of the hosts of an interface.
pub(super) fn limits(value: &InterfaceValue) -> String {
    let without_class = flags(u32::from(value.default_flags), " for hosts without a class");
    flags(u32::from(value.flags), " for all hosts") + &without_class
}

fn flags(bits: u32, scope: &str) -> String {
    let flags = [
        (device_flags::BLOCKED, "blocked"),
        (device_flags::NO_INTERNET, "no internet"),
        (device_flags::NO_LAN, "no other LAN network"),
        (device_flags::POLICY_ONLY, "only by policy"),
    ];
    flags.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| format!(", {name}{scope}")).collect()
}

/// Name of the kind of a LAN source.
pub(super) fn source(kind: u32) -> &'static str {
    match SourceKind::from_wire(kind) {
        SourceKind::Denied => "denied",
        SourceKind::Lan => "LAN",
        SourceKind::LinkLocal => "link-local",
        SourceKind::Unspecified => "unspecified",
    }
}

pub(super) fn local(value: &LocalValue) -> &'static str {
    match value.kind() {
        LocalKind::Forbidden => "forbidden",
        LocalKind::Own => "own",
        LocalKind::Lan => "lan",
        LocalKind::Link => "link",
        LocalKind::Uplink => "uplink",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExcludedPrefix {
    pub destination: String,
    pub kind: &'static str,
}

pub(super) fn excludes(plan: &Plan) -> Vec<ExcludedPrefix> {
    let locals = plan.dataplane.locals.iter().filter(|(_, value)| !value.is(LocalKind::Uplink));
    locals.map(|(net, value)| ExcludedPrefix { destination: net.to_string(), kind: local(value) }).collect()
}

/// `leg 16 (wg-a)`, `one of leg 16 (wg-a), leg 17 (wg-b)`, `reject`
pub(super) fn choice(compiled: &Compiled, choice: &Choice) -> String {
    match choice.kind() {
        ChoiceKind::Drop => "drop".to_owned(),
        ChoiceKind::Reject => "reject".to_owned(),
        ChoiceKind::Direct => "direct".to_owned(),
        ChoiceKind::Legs | ChoiceKind::Proxy => {
            let names: Vec<String> = LegId::of_choice(choice)
                .map(|number| {
                    let Some(number) = number else { return "the default route".to_owned() };
                    let interface = compiled.legs.get(number).map_or("?", |leg| leg.interface.as_str());
                    format!("leg {number} ({interface})")
                })
                .collect();
            let mut text = match names.as_slice() {
                [one] => one.clone(),
                several => format!("in turn {}", several.join(", ")),
            };
            for number in choice.all().iter().skip(usize::from(choice.count)) {
                text += &format!(", keeping leg {number}");
            }
            if let Some(proxy) = ProxyIndex::new(choice.proxy) {
                text = format!("proxy {} ({}) by {text}", choice.proxy, compiled.proxy_name(proxy));
            }
            text
        }
    }
}

/// Returns the actions of policies, by rank.
pub(super) fn actions(compiled: &Compiled) -> Vec<String> {
    let line = |policy: &crate::compile::CompiledPolicy| {
        format!(
            "policy #{} {:?} (priority {}, {}): IPv4 {}; IPv6 {}",
            policy.rank,
            policy.name,
            policy.priority,
            policy.fail_policy,
            choice(compiled, &policy.v4),
            choice(compiled, &policy.v6)
        )
    };
    compiled.policies.iter().map(line).collect()
}

pub(super) fn action_entries(compiled: &Compiled) -> Vec<String> {
    let actions = compiled.plan.dataplane.actions.iter().enumerate();
    actions
        .map(|(rank, action)| {
            let sticky = match Sticky::from_wire(action.sticky) {
                Sticky::Flow => "flow",
                Sticky::Source => "source",
                Sticky::SourceDestination => "source and destination",
            };
            format!(
                "#{rank} -> counter {}, IPv4 {}, IPv6 {}, sticky by {sticky}",
                action.policy,
                choice(compiled, &action.v4),
                choice(compiled, &action.v6)
            )
        })
        .collect()
}

pub(super) fn ip_rules(plan: &Plan) -> Vec<String> {
    plan.rules
        .iter()
        .map(|(key, rule)| {
            let from = rule.input_interface.as_ref().map(|name| format!(" iif {name}")).unwrap_or_default();
            let mark = rule.fwmark.map(|(value, mask)| match mask {
                u32::MAX => format!(" fwmark {value:#010x}"),
                _ => format!(" fwmark {value:#010x}/{mask:#010x}"),
            });
            let action = match rule.action {
                RuleAction::Table(names::TABLE_MAIN) => "lookup main".to_owned(),
                RuleAction::Table(table) => format!("lookup {table}"),
                RuleAction::Prohibit => "prohibit".to_owned(),
                RuleAction::Unreachable => "unreachable".to_owned(),
            };
            let suppress = rule.suppress_prefix_length;
            let suppress =
                suppress.map(|length| format!(" suppress_prefixlength {length}")).unwrap_or_default();
            let family = match key.family {
                Family::V4 => "ip",
                Family::V6 => "ip -6",
            };
            format!(
                "{family} rule {}: from all{from}{} {action}{suppress}",
                key.priority,
                mark.unwrap_or_default()
            )
        })
        .collect()
}

pub(super) fn routes(plan: &Plan) -> Vec<String> {
    plan.routes
        .iter()
        .map(|(key, route)| {
            let (table, net, metric) = (key.table, key.destination, key.metric);
            match route {
                RouteValue::Unicast { interface, gateway } => {
                    let via = gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
                    format!("{net}{via} dev {interface} table {table} metric {metric}")
                }
                RouteValue::Unreachable => format!("unreachable {net} table {table} metric {metric}"),
                RouteValue::Local => format!("local {net} dev lo table {table} metric {metric}"),
                RouteValue::Prohibit => format!("prohibit {net} table {table} metric {metric}"),
            }
        })
        .collect()
}

pub(super) fn nft(plan: &Plan) -> Vec<String> {
    let table = names::NFT_TABLE;
    let nft = &plan.nft;
    let mut lines = Vec::new();
    if !nft.tunnels.is_empty() {
        lines.push(format!("nft inet {table}: masquerade what leaves by {}", nft.tunnels.join(", ")));
    }
    if !nft.uplinks.is_empty() {
        let uplinks = nft.uplinks.join(", ");
        lines.push(format!(
            "nft inet {table}: masquerade IPv4 and unique local IPv6 that leaves by {uplinks}"
        ));
    }
    if !nft.open_udp.is_empty() {
        let ports: Vec<String> = nft.open_udp.iter().map(ToString::to_string).collect();
        lines.push(format!("nft inet {table}: accept UDP to port {} from outside", ports.join(", ")));
    }
    if nft.proxied {
        lines.push(format!(
            "nft inet {table}: hand TCP and UDP with a proxy's mark to the relay at port {} of loopback",
            names::RELAY_PORT
        ));
    }
    lines
}

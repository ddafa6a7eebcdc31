//! Addresses that servers see: the egresses by which a check asks for them, and the comparison of the answers.
//!
//! A tunnel can fail to hide the address of the uplink, for instance when its remote end is on the same network. Only a
//! host on the internet sees that, and it learns of the check, so no third party takes part unless `privacy.leak_check`
//! names STUN servers. The gateway asks from its own address: tunnels masquerade every host. It does not ask for global
//! IPv6 on an uplink, where the answer would not be that of the device, nor through a proxy. IPv6 is compared by the
//! /64. A missing answer proves nothing and fails nothing. Rejected: requests in the name of a device, whose answers
//! would have to be taken from its flows.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_model::settings::groups::LeakCheckSettings;

use super::subject::is_link_local;
use super::{Check, ExitAnswers, ExitCheck, ExitQuery, Expected, Host, Probe};
use crate::compile::{Compiled, Input, Leg};
use crate::evaluate::leg_name;

/// Comparison of the answers to the queries of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExitResult {
    /// Address that a server saw by the first of the expected egresses for which there is an answer.
    pub address: Option<IpAddr>,
    /// A tunnel does not hide the address of an uplink.
    pub is_exposed: bool,
    pub sentences: Vec<String>,
}

/// Plans the queries of checks: none without servers in the settings, and none for probes that do not leave.
pub(super) fn plan_exits(
    input: &Input<'_>,
    compiled: &Compiled,
    host: &Host,
    (checks, probes): (&[Check], &[Probe]),
) -> Vec<ExitCheck> {
    if input.state.group::<LeakCheckSettings>().stun_servers.is_empty() {
        return Vec::new();
    }
    let families = checks.iter().filter_map(|check| Some((*check, check.is_ipv6()?)));
    families
        .map(|(check, ipv6)| {
            let planner = ExitPlanner { input, compiled, host, ipv6 };
            planner.plan(check, probes.iter().filter(|probe| probe.check == check))
        })
        .collect()
}

struct ExitPlanner<'a> {
    input: &'a Input<'a>,
    compiled: &'a Compiled,
    host: &'a Host,
    ipv6: bool,
}

impl ExitPlanner<'_> {
    fn plan<'p>(&self, check: Check, probes: impl Iterator<Item = &'p Probe>) -> ExitCheck {
        let (mut legs, mut unknown) = (BTreeSet::new(), BTreeSet::new());
        for probe in probes {
            match &probe.expected {
                Expected::Stopped(_) | Expected::Answered => {}
                Expected::Proxied(proxy) => {
                    unknown.insert(format!(
                        "It is not known which address servers see behind the proxy {proxy}."
                    ));
                }
                Expected::Leaves { by } if probe.legs.is_empty() => {
                    let by = by.iter().cloned().collect::<Vec<_>>().join(", ");
                    unknown.insert(format!(
                        "It is not known which address servers see by {by}, which is no uplink."
                    ));
                }
                Expected::Leaves { .. } => legs.extend(&probe.legs),
            }
        }
        let mut expected = Vec::new();
        for leg in legs.iter().filter_map(|number| self.compiled.legs.get(*number)) {
            let egress = leg_name(self.input, self.compiled, leg.number);
            if leg.is_uplink() && self.is_untranslated() {
                unknown.insert(format!(
                    "By {egress}, servers see the IPv6 address of the host: the gateway does not translate it."
                ));
            } else if let Some(query) = self.query(leg) {
                expected.push(query);
            } else {
                unknown
                    .insert(format!("No server was asked by {egress}: it has no {} address.", self.family()));
            }
        }
        let has_tunnel = expected.iter().any(ExitQuery::is_by_tunnel);
        let others = self.compiled.legs.uplinks().filter(|leg| {
            let carries = if self.ipv6 { leg.ipv6 } else { leg.ipv4 };
            has_tunnel && leg.usable && carries && !legs.contains(&leg.number)
        });
        let uplinks = others.filter_map(|leg| self.query(leg)).collect();
        ExitCheck { check, expected, uplinks, unknown: unknown.into_iter().collect() }
    }

    fn query(&self, leg: &Leg) -> Option<ExitQuery> {
        let addresses = self.input.facts.addresses.get(&leg.interface)?;
        let mut addresses = addresses.iter().map(ipnet::IpNet::addr);
        let source = addresses.find(|at| at.is_ipv6() == self.ipv6 && !is_link_local(*at))?;
        Some(ExitQuery {
            leg: leg.number,
            egress: leg_name(self.input, self.compiled, leg.number),
            interface: leg.interface.clone(),
            source,
            tunnel: leg.tunnel(),
        })
    }

    /// Reports whether the host keeps its source on uplinks, where only IPv4 and unique local addresses (RFC 4193) are
    /// masqueraded.
    fn is_untranslated(&self) -> bool {
        matches!(self.host.v6, IpAddr::V6(address) if self.ipv6 && !address.is_unique_local())
    }

    fn family(&self) -> &'static str {
        if self.ipv6 { "IPv6" } else { "IPv4" }
    }
}

/// Compares the addresses that servers saw by tunnels with those of the uplinks.
pub(super) fn compare_exits(exits: &ExitCheck, answers: &ExitAnswers) -> ExitResult {
    let answer = |query: &ExitQuery| match answers.get(query) {
        Some(answer) => answer.clone(),
        None => Err("none was asked".to_owned()),
    };
    let (mut result, mut seen, mut exposed, mut silent) = (ExitResult::default(), vec![], vec![], vec![]);
    for query in &exits.expected {
        let address = match answer(query) {
            Ok(address) => address,
            Err(reason) => {
                silent.push(format!(
                    "It is not known which address servers see by {}: no answer ({reason}).",
                    query.egress
                ));
                continue;
            }
        };
        result.address = result.address.or(Some(address));
        seen.push(format!("{address} by {}", query.egress));
        let uplinks = exits.queries().filter(|other| query.is_by_tunnel() && !other.is_by_tunnel());
        for uplink in uplinks {
            let addresses = answer(uplink).ok().into_iter().chain([uplink.source]);
            if let Some(own) = addresses.into_iter().find(|own| is_same_subscriber(*own, address)) {
                exposed
                    .push(format!("{} does not hide {own} of the uplink {}.", query.egress, uplink.egress));
            }
        }
    }
    for query in exits.uplinks.iter().filter(|_| result.address.is_some()) {
        match answer(query) {
            Ok(address) => seen.push(format!("{address} by {}", query.egress)),
            Err(reason) => silent.push(format!(
                "The address was not compared with that of the uplink {}: no answer ({reason}).",
                query.egress
            )),
        }
    }
    result.is_exposed = !exposed.is_empty();
    let seen = (!seen.is_empty()).then(|| format!("Servers saw {}.", seen.join(", ")));
    result.sentences = seen.into_iter().chain(exposed).chain(silent).chain(exits.unknown.clone()).collect();
    result
}

/// Compares whole IPv4 addresses, and the networks of IPv6 addresses: a /64 belongs to one subscriber (RFC 6177).
fn is_same_subscriber(a: IpAddr, b: IpAddr) -> bool {
    match (a, b) {
        (IpAddr::V6(a), IpAddr::V6(b)) => a.octets()[..8] == b.octets()[..8],
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::id::Id;

    use super::*;
    use crate::indexes::LegId;

    fn query(egress: &str, source: &str, tunnel: Option<Id>) -> ExitQuery {
        let (interface, source) = (egress.to_owned(), source.parse().expect("an address"));
        ExitQuery { leg: LegId::FIRST, egress: egress.to_owned(), interface, source, tunnel }
    }

    /// Compares the answers by a tunnel and by its uplink; empty texts are no answer.
    fn compared(ipv6: bool, by_tunnel: &str, by_uplink: &str) -> ExitResult {
        let (inside, outside) =
            if ipv6 { ("fd64::2", "2001:db8:1::2") } else { ("10.64.0.2", "192.168.0.2") };
        let id = "00000000-0000-7000-8000-000000000001".parse().expect("an id");
        let (tunnel, uplink) = (query("vpn", inside, Some(id)), query("wan", outside, None));
        let check = if ipv6 { Check::Ipv6 } else { Check::Ipv4 };
        let answer = |text: &str| text.parse::<IpAddr>().map_err(|_| "timeout".to_owned());
        let answers =
            [(tunnel.clone(), answer(by_tunnel)), (uplink.clone(), answer(by_uplink))].into_iter().collect();
        let exits = ExitCheck { check, expected: vec![tunnel], uplinks: vec![uplink], unknown: Vec::new() };
        compare_exits(&exits, &answers)
    }

    #[test]
    fn a_tunnel_is_exposed_if_servers_see_the_uplink_behind_it() {
        let table = [
            (false, "198.51.100.7", "203.0.113.2", false),
            (false, "203.0.113.2", "203.0.113.2", true),
            (false, "192.168.0.2", "203.0.113.2", true),
            (false, "192.168.0.2", "", true),
            (false, "198.51.100.7", "", false),
            (false, "", "203.0.113.2", false),
            (false, "", "", false),
            (true, "2001:db8:a::7", "2001:db8:1::2", false),
            (true, "2001:db8:1::9", "2001:db8:1::2", true),
            (true, "2001:db8:1::9", "", true),
            (true, "2001:db8:1:1::9", "2001:db8:1::2", false),
        ];
        for (ipv6, by_tunnel, by_uplink, is_exposed) in table {
            let result = compared(ipv6, by_tunnel, by_uplink);
            assert_eq!(result.is_exposed, is_exposed, "{by_tunnel} {by_uplink}: {result:?}");
            assert_eq!(result.address, by_tunnel.parse().ok());
        }
    }

    #[test]
    fn sentences_name_each_answer_and_each_missing_one() {
        let sentences = |by_tunnel, by_uplink| compared(false, by_tunnel, by_uplink).sentences;
        assert_eq!(
            sentences("198.51.100.7", "203.0.113.2"),
            ["Servers saw 198.51.100.7 by vpn, 203.0.113.2 by wan."]
        );
        assert_eq!(
            sentences("203.0.113.2", "203.0.113.2")[1..],
            ["vpn does not hide 203.0.113.2 of the uplink wan."]
        );
        assert_eq!(
            sentences("198.51.100.7", "")[1..],
            ["The address was not compared with that of the uplink wan: no answer (timeout)."]
        );
        let silent = "It is not known which address servers see by vpn: no answer (timeout).";
        assert_eq!(sentences("", "203.0.113.2"), [silent]);
    }

    #[test]
    fn an_uplink_hides_nothing_and_exposes_nothing() {
        let uplink = query("wan", "203.0.113.2", None);
        let answers = [(uplink.clone(), Ok(uplink.source))].into_iter().collect();
        let exits = ExitCheck {
            check: Check::Ipv4,
            expected: vec![uplink.clone()],
            uplinks: Vec::new(),
            unknown: Vec::new(),
        };
        let result = compare_exits(&exits, &answers);
        assert_eq!((result.address, result.is_exposed), (Some(uplink.source), false));
        assert_eq!(result.sentences, ["Servers saw 203.0.113.2 by wan."]);
        let unasked = compare_exits(&exits, &ExitAnswers::new());
        assert_eq!((unasked.address, unasked.is_exposed), (None, false));
        assert!(unasked.sentences[0].contains("none was asked"), "{unasked:?}");
    }
}

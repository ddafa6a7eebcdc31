//! Risks that remain although no check fails.

use gateway_model::kinds::privacy_class::WebRtc;

use super::{Check, Expected, Plan, Probe};

/// Returns a sentence for each risk. `unanswered` has the checks without an address that a server saw.
pub(super) fn remaining_risks(plan: &Plan, unanswered: &[Check]) -> Vec<String> {
    let leaves_directly = |check: Option<Check>| {
        let probes = plan.probes.iter().filter(|probe| check.is_none_or(|check| probe.check == check));
        probes.into_iter().any(Probe::leaves_directly)
    };
    let leaves = |check: Check| {
        let probes = plan.probes.iter().filter(|probe| probe.check == check);
        probes
            .into_iter()
            .any(|probe| matches!(probe.expected, Expected::Leaves { .. } | Expected::Proxied(_)))
    };
    let mut risks = Vec::new();
    let mut add = |text: &str| risks.push(text.to_owned());
    if !plan.is_protected || leaves_directly(None) {
        add("Servers see the public address of an uplink.");
    }
    for check in unanswered.iter().filter(|check| leaves(**check)) {
        match check.is_ipv6() {
            Some(false) => add("The check does not show which IPv4 address servers see."),
            Some(true) => add("The check does not show which IPv6 address servers see."),
            None => {}
        }
    }
    if leaves(Check::Dns) {
        add(
            "Programs can ask other resolvers, and the policies for names do not hold for what they learn there.",
        );
    }
    if plan.blocks.block_doh {
        add(
            "DNS over HTTPS to resolvers that are not among the known ones is not recognised, nor is a name that ECH encrypts.",
        );
    } else {
        add("DNS over HTTPS is not blocked.");
    }
    match plan.blocks.webrtc {
        WebRtc::Off => add("Browsers can learn the public address by STUN, and reveal it."),
        WebRtc::Tunnel | WebRtc::Block => add("TURN over TLS is not recognised."),
    }
    if leaves_directly(Some(Check::Ipv6)) {
        add("The IPv6 address of the host is not translated: servers see it.");
    }
    add("What a program tells a server about the host, and the names in TLS handshakes, are not checked.");
    risks
}

//! Hosts by the treatment of their packets to the internet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::verdict::{Reason, Verdict};
use gateway_model::id::MacAddr;
use gateway_model::kinds::routing_policy::FailPolicy;
use gateway_model::problem::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::compile::{Compiled, Input};
use crate::evaluate::{
    self, Entry, Protocol, Request, Subject, blocking_reason, decide_packet, hops_down_in_words, host_of,
    packet, public_address,
};
use crate::phrase::Phrase;

/// Port that stands for the internet.
const HTTPS: u16 = 443;

/// Number of hosts by the treatment of their packets to the internet. Hosts count that have answered the gateway and were
/// seen in the last 24 hours. A host whose families are treated differently counts where it is less protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostCounts {
    /// Hosts that leave through a policy or not at all: `through_policy` and `blocked`.
    pub protected: usize,
    pub through_policy: usize,
    pub blocked: usize,
    /// Hosts that leave by the default route because of an exception.
    pub direct_by_exception: usize,
    /// Hosts that leave by the default route because no hop of their policy is usable and it fails open.
    pub failed_open: usize,
    /// Hosts that leave by the default route because no policy is for them.
    pub no_policy: usize,
    /// Device records of which no host was seen in the last 24 hours. They are in no other number.
    pub records_silent: usize,
}

/// Hosts that are covered, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    /// Hosts that a policy, a block or an exception is for.
    pub covered: usize,
    pub total: usize,
}

impl HostCounts {
    /// Counts a host.
    pub(crate) fn add(&mut self, treatment: Treatment) {
        *match treatment {
            Treatment::Blocked => &mut self.blocked,
            Treatment::ThroughPolicy => &mut self.through_policy,
            Treatment::DirectByException => &mut self.direct_by_exception,
            Treatment::FailedOpen => &mut self.failed_open,
            Treatment::NoPolicy => &mut self.no_policy,
        } += 1;
        self.protected = self.blocked + self.through_policy;
    }

    /// Returns the number of hosts.
    pub fn total(&self) -> usize {
        self.protected + self.direct()
    }

    /// Returns the number of hosts that leave by the default route.
    pub fn direct(&self) -> usize {
        self.direct_by_exception + self.failed_open + self.no_policy
    }

    pub fn share(&self) -> Share {
        Share { covered: self.total() - self.no_policy, total: self.total() }
    }
}

/// Hosts, and why some are blocked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreatedHosts {
    pub counts: HostCounts,
    /// Blocked hosts by the English text of the cause.
    pub causes: BTreeMap<String, BlockCause>,
}

/// Cause for which hosts are blocked.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCause {
    pub hosts: usize,
    pub phrase: Phrase,
}

/// Host on the LAN, as far as the decision on its packets needs it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PresentHost {
    pub interface: String,
    pub mac: MacAddr,
    pub ips: Vec<IpAddr>,
}

/// Treatment of a host's packets to the internet, in order of exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// They do not leave.
    Blocked,
    /// They leave by the hops of a policy.
    ThroughPolicy,
    /// They leave by the default route because of an exception.
    DirectByException,
    /// They leave by the default route because no hop of their policy is usable and it fails open.
    FailedOpen,
    /// They leave by the default route because no policy is for them.
    NoPolicy,
}

/// Counts the hosts on the LAN by the decision of a plan.
pub fn count(input: &Input<'_>, compiled: &Compiled, hosts: &[PresentHost]) -> TreatedHosts {
    let to = internet(compiled);
    let mut treated = TreatedHosts::default();
    for host in hosts {
        let packets = host_packets(input, host, to);
        let verdicts = packets.iter().map(|packet| decide_packet(compiled, packet, &[]));
        let verdicts = verdicts.map(|verdict| (treatment(compiled, &verdict), verdict));
        let Some((treatment, verdict)) = verdicts.max_by_key(|(treatment, _)| *treatment) else { continue };
        treated.counts.add(treatment);
        if treatment == Treatment::Blocked {
            let phrase = cause(input, compiled, host.mac, &verdict);
            let new = |phrase: Phrase| BlockCause { hosts: 0, phrase };
            treated.causes.entry(phrase.text.clone()).or_insert_with(|| new(phrase)).hosts += 1;
        }
    }
    treated.counts.records_silent = silent_records(input, hosts);
    treated
}

/// Returns the number of device records without a host on the LAN.
pub(crate) fn silent_records(input: &Input<'_>, hosts: &[PresentHost]) -> usize {
    let macs: BTreeSet<MacAddr> = hosts.iter().map(|host| host.mac).collect();
    input.state.devices.iter().filter(|device| device.all_macs().is_disjoint(&macs)).count()
}

/// Returns an address for each family that stands for the internet.
pub fn internet(compiled: &Compiled) -> [IpAddr; 2] {
    [false, true].map(|ipv6| public_address(compiled, ipv6, HTTPS, &mut Vec::new()))
}

/// Returns a packet of a host to the internet for each family of its LAN.
pub(crate) fn host_packets(input: &Input<'_>, host: &PresentHost, to: [IpAddr; 2]) -> Vec<IpPacket> {
    let entry = Entry::at(input, &host.interface);
    packets_of(input, Some(host.mac), &host.ips, &entry, to)
}

/// Returns a packet to the internet for each family of the device's LAN.
pub(crate) fn packets(input: &Input<'_>, subject: &Subject<'_>, to: [IpAddr; 2]) -> Vec<IpPacket> {
    let known = subject.addresses(input);
    let entry = evaluate::entry(input, &Request::default(), &known, &mut Problems::new(), &mut Vec::new());
    packets_of(input, subject.mac, &known, &entry, to)
}

fn packets_of(
    input: &Input<'_>,
    mac: Option<MacAddr>,
    known: &[IpAddr],
    entry: &Entry,
    to: [IpAddr; 2],
) -> Vec<IpPacket> {
    let pairs = to.iter().filter_map(|to| Some((source(input, entry, known, to.is_ipv6())?, *to)));
    pairs.map(|(from, to)| packet(mac, entry, from, to, Protocol::Tcp, HTTPS)).collect()
}

/// Returns an address of the host. `None` if its LAN does not have the family.
fn source(input: &Input<'_>, entry: &Entry, known: &[IpAddr], ipv6: bool) -> Option<IpAddr> {
    let host = host_of(input, entry, ipv6)?;
    let nets = input.facts.addresses.get(&entry.name)?;
    let own = known.iter().find(|own| {
        let is_near = nets.iter().any(|net| net.contains(*own));
        let is_link_local = matches!(own, IpAddr::V6(six) if six.is_unicast_link_local());
        own.is_ipv6() == ipv6 && is_near && !is_link_local
    });
    Some(own.copied().unwrap_or(host))
}

pub(crate) fn treatment(compiled: &Compiled, verdict: &Verdict) -> Treatment {
    match verdict.reason {
        Reason::PolicyEgress | Reason::PolicyProxy => Treatment::ThroughPolicy,
        Reason::PolicyDirect => match compiled.policy_of(verdict) {
            Some(policy) if policy.exception_until.is_some() => Treatment::DirectByException,
            Some(policy) if policy.fail_policy == FailPolicy::Open => Treatment::FailedOpen,
            _ => Treatment::NoPolicy,
        },
        Reason::NoPolicy => Treatment::NoPolicy,
        _ => Treatment::Blocked,
    }
}

/// Returns why a host is blocked.
fn cause(input: &Input<'_>, compiled: &Compiled, mac: MacAddr, verdict: &Verdict) -> Phrase {
    match (verdict.reason, compiled.policy_of(verdict)) {
        (Reason::PolicyReject | Reason::PolicyDrop, Some(policy)) => {
            let down = policy.hops.iter().filter(|hop| !hop.usable);
            hops_down_in_words(down).unwrap_or_else(|| {
                let text = format!("the policy {} has no hop for it", policy.name);
                Phrase::new("no_hop_for_host", [("policy", json!(policy.name))], text)
            })
        }
        (reason, _) => {
            let Some(device) = input.state.device_by_mac(mac) else { return blocking_reason(reason, None) };
            let quarantine = input.state.quarantine_of(device.meta.id, input.now);
            let class = input.state.trust_class_of(device).map(|class| class.name.clone());
            match quarantine {
                Some(_) => {
                    Phrase::new("quarantine", [("until", Value::Null)], "an exception keeps it in quarantine")
                }
                None => blocking_reason(reason, class.as_deref()),
            }
        }
    }
}

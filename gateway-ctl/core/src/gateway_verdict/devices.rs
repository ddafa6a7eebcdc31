//! Devices by the treatment of their packets to the internet.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::verdict::{Reason, Verdict};
use gateway_model::Device;
use gateway_model::kinds::routing_policy::FailPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compile::{Compiled, CompiledPolicy, Input};
use crate::evaluate::{
    self, Entry, Protocol, Request, Subject, blocking_reason, decide_packet, hop_down_in_words, host_of,
    packet, public_address,
};
use gateway_model::problem::Problems;

/// Port that stands for the internet.
const HTTPS: u16 = 443;

/// Number of devices by the treatment of their packets to the internet. A device whose families are treated
/// differently counts where it is less protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceCounts {
    /// Devices that leave through a policy or not at all: `through_policy` and `blocked`.
    pub protected: usize,
    pub through_policy: usize,
    pub blocked: usize,
    /// Devices that leave by the default route because of an exception.
    pub direct_by_exception: usize,
    /// Devices that leave by the default route because no hop of their policy is usable and it fails open.
    pub failed_open: usize,
    /// Devices that leave by the default route because no policy is for them.
    pub no_policy: usize,
}

impl DeviceCounts {
    /// Counts a device.
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
}

/// Devices, and why some are blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    pub counts: DeviceCounts,
    /// Number of blocked devices by reason.
    pub causes: BTreeMap<String, usize>,
}

/// Treatment of a device's packets to the internet, in order of exposure.
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

/// Counts the devices of a plan.
pub fn count(input: &Input<'_>, compiled: &Compiled) -> Devices {
    let to = internet(compiled);
    let mut devices = Devices::default();
    for device in input.state.devices.iter() {
        let packets = packets(input, device, to);
        let verdicts = packets.iter().map(|packet| decide_packet(compiled, packet, &[]));
        let treated = verdicts.map(|verdict| (treatment(compiled, &verdict), verdict));
        let Some((treatment, verdict)) = treated.max_by_key(|(treatment, _)| *treatment) else { continue };
        devices.counts.add(treatment);
        if treatment == Treatment::Blocked {
            *devices.causes.entry(cause(input, compiled, device, &verdict)).or_default() += 1;
        }
    }
    devices
}

/// Returns an address for each family that stands for the internet.
pub(crate) fn internet(compiled: &Compiled) -> [IpAddr; 2] {
    [false, true].map(|ipv6| public_address(compiled, ipv6, HTTPS, &mut Vec::new()))
}

/// Returns a packet to the internet for each family of the device's LAN.
pub(crate) fn packets(input: &Input<'_>, device: &Device, to: [IpAddr; 2]) -> Vec<IpPacket> {
    let request = Request { device_id: Some(device.meta.id), ..Request::default() };
    let Ok(subject) = Subject::find(input, &request) else { return Vec::new() };
    let known = subject.addresses(input);
    let entry = evaluate::entry(input, &Request::default(), &known, &mut Problems::new(), &mut Vec::new());
    let of_family = |to: &IpAddr| source(input, &entry, &known, to.is_ipv6());
    let pairs = to.iter().filter_map(|to| Some((of_family(to)?, *to)));
    pairs.map(|(from, to)| packet(subject.mac, &entry, from, to, Protocol::Tcp, HTTPS)).collect()
}

/// Returns an address of the device. `None` if its LAN does not have the family.
fn source(input: &Input<'_>, entry: &Entry, known: &[IpAddr], ipv6: bool) -> Option<IpAddr> {
    let host = host_of(input, entry, ipv6)?;
    let nets = input.facts.addresses.get(&entry.name)?;
    let own = known.iter().find(|own| {
        let is_near = nets.iter().any(|net| net.contains(*own));
        own.is_ipv6() == ipv6 && is_near
    });
    Some(own.copied().unwrap_or(host))
}

pub(crate) fn treatment(compiled: &Compiled, verdict: &Verdict) -> Treatment {
    match verdict.reason {
        Reason::PolicyEgress | Reason::PolicyProxy => Treatment::ThroughPolicy,
        Reason::PolicyDirect => match compiled.policy(verdict.rank) {
            Some(policy) if policy.exception_until.is_some() => Treatment::DirectByException,
            Some(policy) if policy.fail_policy == FailPolicy::Open => Treatment::FailedOpen,
            _ => Treatment::NoPolicy,
        },
        Reason::NoPolicy => Treatment::NoPolicy,
        _ => Treatment::Blocked,
    }
}

/// Returns why a device is blocked.
fn cause(input: &Input<'_>, compiled: &Compiled, device: &Device, verdict: &Verdict) -> String {
    let down = |policy: &CompiledPolicy| {
        let down: Vec<String> = policy.hops.iter().filter(|hop| !hop.usable).map(hop_down_in_words).collect();
        (!down.is_empty()).then(|| down.join(", "))
    };
    match (verdict.reason, compiled.policy(verdict.rank)) {
        (Reason::PolicyReject | Reason::PolicyDrop, Some(policy)) => {
            down(policy).unwrap_or_else(|| format!("the policy {} has no hop for it", policy.name))
        }
        (reason, _) => {
            let quarantine = input.state.quarantine_of(device.meta.id, input.now);
            let class = input.state.trust_class_of(device).map(|class| class.name.clone());
            match quarantine {
                Some(_) => "an exception keeps it in quarantine".to_owned(),
                None => blocking_reason(reason, class.as_deref()),
            }
        }
    }
}

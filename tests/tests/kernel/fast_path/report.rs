//! Counters and samples of a gateway, in a form that is equal for two gateways that got the same packets.

use std::collections::BTreeMap;

use gateway_common::verdict::Reason;
use gateway_common::wire::BlockKey;
use gateway_ctl::os::bpf::{Counters, Event};

use super::testbed::Testbed;

/// More than a step of a test makes.
const EVENTS: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub reasons: BTreeMap<Reason, Counters>,
    pub devices: Vec<Counters>,
    pub policies: Vec<Counters>,
    pub blocks: BTreeMap<BlockKey, Counters>,
    pub unrecorded: Counters,
    /// Sampled flows since the last report.
    pub samples: Vec<Event>,
}

impl Report {
    /// Reads the counters of some devices and policies, and all others.
    pub(super) fn read(testbed: &mut Testbed, devices: &[u32], policies: &[u32]) -> Report {
        let programs = &mut testbed.programs;
        // The gateways have other clocks and other interfaces. The guard drops multicast reports of the kernel itself.
        let samples = programs.drain_events(EVENTS).into_iter().filter(|event| !event.guard);
        let samples = samples.map(|event| Event { boot_ns: 0, interface: 0, ..event }).collect();
        let of_device = |number: &u32| programs.device_counters(*number).expect("the counters");
        let of_policy = |number: &u32| programs.policy_counters(*number).expect("the counters");
        Report {
            reasons: programs.reason_counters().expect("the counters"),
            devices: devices.iter().map(of_device).collect(),
            policies: policies.iter().map(of_policy).collect(),
            blocks: programs.block_hits().expect("the counters"),
            unrecorded: programs.unrecorded().expect("the counters"),
            samples,
        }
    }
}

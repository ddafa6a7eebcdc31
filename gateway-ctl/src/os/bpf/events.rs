//! Reports of the programs: sampled verdicts and packets that the egress guard dropped.

use std::net::IpAddr;

use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::EventRecord;
use schemars::JsonSchema;
use serde::Serialize;
use zerocopy::FromBytes as _;

use super::Programs;

/// A verdict on a new flow, or a packet that the egress guard dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Event {
    /// Boot-time clock in nanoseconds.
    pub boot_ns: u64,
    /// True if the egress guard dropped the packet. Only interface, mark and length are known then.
    pub guard: bool,
    /// `drop`, `mark` or `pass`.
    pub action: &'static str,
    pub reason: &'static str,
    pub source: Option<IpAddr>,
    pub destination: Option<IpAddr>,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    /// Index of the ingress interface.
    pub interface: u32,
    pub mark: u32,
    /// Index (`slot`) of the policy, 0 without one.
    pub policy: u32,
    /// Index (`slot`) of the device, 0 without one.
    pub device: u32,
    pub length: u32,
}

impl Event {
    fn read(bytes: &[u8]) -> Option<Event> {
        let record = EventRecord::read_from_prefix(bytes).ok()?.0;
        let action = match record.action {
            a if a == Action::Mark as u8 => "mark",
            a if a == Action::Pass as u8 => "pass",
            _ => "drop",
        };
        let guard = record.guard != 0;
        Some(Event {
            boot_ns: record.time,
            guard,
            action,
            reason: Reason::from_wire(record.reason)?.as_str(),
            source: (!guard).then(|| record.source.into()),
            destination: (!guard).then(|| record.destination.into()),
            source_port: record.source_port,
            destination_port: record.destination_port,
            protocol: record.protocol,
            interface: record.interface,
            mark: record.mark,
            policy: record.policy,
            device: record.device,
            length: record.length,
        })
    }
}

impl Programs {
    /// Returns the events since the last call, at most `most` of them.
    pub fn drain_events(&mut self, most: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < most {
            let Some(item) = self.maps.events.next() else { break };
            events.extend(Event::read(&item));
        }
        events
    }
}

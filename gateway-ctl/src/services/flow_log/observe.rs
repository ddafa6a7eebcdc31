//! Reading of the kernel's tables, and of the relay, whose flows conntrack does not track.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_common::wire::{FlowKey, FlowValue, Fragment};
use gateway_core::flow_log::{CountedWords, EvaluatedFlow, Observation, PacketKey, Traffic, Tuple};
use gateway_core::indexes::{LegId, PolicyIndex};
use gateway_model::MacAddr;
use jiff::{SignedDuration, Timestamp};

use super::server_names::ServerNames;
use crate::os::conntrack::connections::{self, EndedConnections};
use crate::os::proxy::RelayedFlows;
use crate::reconcile::KernelDataplane;

/// Records of the flow table without a packet for longer are not read. A flow that sends again is read then.
const RECENT_SECONDS: u16 = 600;
/// Copies of segments that are read at a time; the ring has room for less.
const MAX_SEGMENTS: usize = 1024;

/// Reader of the tables, with its subscription.
#[derive(Default)]
pub(super) struct Observer {
    ended: Option<EndedConnections>,
    /// Counters of denied packets, by flow and state of fragmentation: each has a record of its own.
    denied: CountedWords<(PacketKey, u8)>,
}

impl Observer {
    /// Returns what was observed since the last call. Blocks on the kernel.
    pub(super) fn observe(
        &mut self,
        dataplane: &KernelDataplane,
        relayed: &RelayedFlows,
        names: &ServerNames,
        now: Timestamp,
    ) -> io::Result<Observation> {
        let is_first = self.ended.is_none();
        let ended = match self.ended.take() {
            Some(ended) => ended,
            None => EndedConnections::open()?,
        };
        // Ends before the tables: what ends between is reported in the next observation.
        let (reports, is_incomplete) = ended.take()?;
        self.ended = Some(ended);
        names.add(&dataplane.with(|programs| programs.drain_hello_segments(MAX_SEGMENTS)));
        let evaluated = self.evaluated(dataplane, now)?;
        let relayed = relayed.observe(now);
        let mut connections = connections::list()?;
        // Of a connection that went another way before, conntrack may have an entry still.
        let is_relayed: HashSet<Tuple> = relayed.open.iter().map(|flow| flow.origin).collect();
        connections.retain(|connection| !is_relayed.contains(&connection.origin));
        connections.extend(relayed.open);
        // Behind conntrack: an entry of the fast path is of a connection that conntrack has.
        let fast_traffic = dataplane.with(|programs| programs.fast_traffic.clone());
        let passed_by =
            fast_traffic.read().inspect_err(|error| tracing::warn!(%error, "failed to read counters"));
        let passed_by = passed_by.ok();
        let mut ended = if is_first { Vec::new() } else { reports };
        ended.extend(relayed.ended);
        Ok(Observation {
            ended,
            is_incomplete: is_incomplete || relayed.is_incomplete,
            connections,
            evaluated,
            passed_by,
            server_names: names.take(),
        })
    }

    fn evaluated(
        &mut self,
        dataplane: &KernelDataplane,
        now: Timestamp,
    ) -> io::Result<HashMap<Tuple, EvaluatedFlow>> {
        let opened = dataplane.with(|programs| Ok((programs.flow_reader()?, programs.flow_seed()?)));
        let (reader, seed) = opened.map_err(|error: crate::os::bpf::Error| io::Error::other(error))?;
        let (mut flows, mut words) = (HashMap::new(), HashMap::new());
        let visit = |key: FlowKey, value: FlowValue, denied: u64, age: Duration| {
            // The ports of a later fragment are in the first one.
            if key.fragment == Fragment::Later as u8 {
                return;
            }
            let is_recent = age.as_secs() <= RECENT_SECONDS.into();
            let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::ZERO);
            let flow = evaluated_flow(&key, &value, now.checked_sub(age).unwrap_or(now));
            if denied != 0 {
                words.insert((flow.key, key.fragment), denied);
            }
            if is_recent {
                add_newest(&mut flows, flow);
            }
        };
        reader.recent(RECENT_SECONDS, seed, visit).map_err(io::Error::other)?;
        let mut denied: HashMap<PacketKey, Traffic> = HashMap::new();
        for ((key, _), more) in self.denied.advance(words) {
            let sum = denied.entry(key).or_default();
            *sum = sum.plus(more);
        }
        flows.values_mut().for_each(|flow| flow.denied = denied.get(&flow.key).copied());
        Ok(flows)
    }
}

/// Removes the copies of segments with names of servers that were not read yet.
pub(super) fn discard_hello_segments(dataplane: &KernelDataplane) {
    drop(dataplane.with(|programs| programs.drain_hello_segments(MAX_SEGMENTS)));
}

fn add_newest(flows: &mut HashMap<Tuple, EvaluatedFlow>, flow: EvaluatedFlow) {
    match flows.entry(Tuple::from(&flow.key)) {
        Entry::Occupied(mut known) if known.get().seen_at <= flow.seen_at => {
            known.insert(flow);
        }
        Entry::Occupied(_) => {}
        Entry::Vacant(free) => {
            free.insert(flow);
        }
    }
}

fn evaluated_flow(key: &FlowKey, value: &FlowValue, seen_at: Timestamp) -> EvaluatedFlow {
    let key = PacketKey {
        interface: key.interface,
        vlan: key.vlan,
        mac: MacAddr(key.mac.octets()),
        source: key.source.into(),
        destination: key.destination.into(),
        source_port: key.source_port,
        destination_port: key.destination_port,
        protocol: key.protocol,
    };
    EvaluatedFlow {
        key,
        generation: value.generation,
        action: value.action,
        reason: value.reason,
        mark: Mark(value.mark),
        policy: PolicyIndex::new(value.policy),
        device: value.device,
        leg: LegId::new(value.leg),
        seen_at,
        denied: None,
    }
}

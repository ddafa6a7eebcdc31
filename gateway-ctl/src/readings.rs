//! Counters and tables of the BPF programs, read on demand.

use std::collections::BTreeMap;

use gateway_common::wire::BlockKey;
use gateway_core::dns::Name;
use gateway_core::facts::Facts;
use gateway_core::fqdn_cache::Key;
use gateway_core::indexes::{LegId, PolicyIndex};
use gateway_model::kinds::routing_policy::Hits;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::os::bpf::{self, Counters, FastPathStats, Programs, XdpStats};
use crate::reconcile::KernelDataplane;
use crate::services::events::Recent;

/// Reader of the programs. Without a kernel, it reads nothing.
#[derive(Clone, Default)]
pub struct DataplaneReader(Option<KernelDataplane>);

/// Packets that privacy blocks stopped.
#[derive(Clone, Debug, Default)]
pub struct BlockHits {
    /// Time since which they are counted.
    pub since: Option<Timestamp>,
    pub hits: BTreeMap<BlockKey, Counters>,
}

/// Counters of the BPF programs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BpfCounters {
    /// Verdicts by reason. Reasons that never occurred are absent.
    pub verdicts: BTreeMap<String, Counters>,
    /// Packets of flows without an entry in the flow table, because their device exceeded its flow budget. Each such
    /// packet gets a full policy lookup.
    pub unrecorded: Counters,
    /// Packets dropped by the egress guard, by interface.
    pub prevented_leaks: BTreeMap<String, Counters>,
    /// Sampled verdicts on new flows, and drops of the egress guard; newest last.
    pub recent: Vec<bpf::Event>,
}

impl From<KernelDataplane> for DataplaneReader {
    fn from(dataplane: KernelDataplane) -> DataplaneReader {
        DataplaneReader(Some(dataplane))
    }
}

impl DataplaneReader {
    fn read<T: Default, E>(&self, read: impl FnOnce(&Programs) -> Result<T, E>) -> Result<T, E> {
        match &self.0 {
            Some(dataplane) => dataplane.with(|programs| read(programs)),
            None => Ok(T::default()),
        }
    }

    /// Returns packets and bytes of a policy, by policy index.
    pub fn hits(&self, policy: PolicyIndex) -> Hits {
        let Counters { packets, bytes } =
            self.read(|programs| programs.policy_counters(policy.get())).unwrap_or_default();
        Hits { packets, bytes }
    }

    /// Returns the bytes that a device has sent, by its slot.
    pub fn device_bytes(&self, slot: u32) -> Result<u64, bpf::Error> {
        self.read(|programs| programs.device_counters(slot)).map(|counted| counted.bytes)
    }

    /// Counts the flows with a packet in the last seconds, by policy index and leg.
    pub fn flows_by_leg(
        &self,
        seconds: u32,
    ) -> Result<BTreeMap<(Option<PolicyIndex>, LegId), u64>, bpf::Error> {
        let Some(dataplane) = &self.0 else { return Ok(BTreeMap::new()) };
        // Not under the lock: the table may be large.
        dataplane.with(|programs| programs.flow_reader())?.flows_by_leg(seconds)
    }

    /// Returns the domains through which a client resolved an address.
    pub fn names_of(&self, key: &Key) -> Vec<Name> {
        self.0.as_ref().map(|dataplane| dataplane.with(|programs| programs.names_of(key))).unwrap_or_default()
    }

    /// Returns the generation of the plan that is live in the kernel; 0 under default deny.
    pub fn generation(&self) -> Result<u32, bpf::Error> {
        self.read(Programs::generation)
    }

    /// Returns the counters of the programs since they were first loaded, with these events. The facts name the
    /// interfaces.
    pub fn counters(&self, facts: &Facts, recent: &Recent) -> Result<BpfCounters, bpf::Error> {
        let name = |index: u32| {
            let link = facts.links.iter().find(|(_, link)| link.index == index);
            link.map_or_else(|| format!("ifindex {index}"), |(name, _)| name.clone())
        };
        self.read(|programs| {
            let reasons = programs.reason_counters()?.into_iter();
            let prevented = programs.prevented()?.into_iter();
            Ok(BpfCounters {
                verdicts: reasons.map(|(reason, counters)| (reason.as_str().to_owned(), counters)).collect(),
                unrecorded: programs.unrecorded()?,
                prevented_leaks: prevented.map(|(index, counters)| (name(index), counters)).collect(),
                recent: recent.list(),
            })
        })
    }

    /// Returns the packets that privacy blocks stopped, by device, policy and reason.
    pub fn block_hits(&self) -> Result<BlockHits, bpf::Error> {
        self.read(|programs| Ok(BlockHits { since: programs.counting_since(), hits: programs.block_hits()? }))
    }

    /// Returns the statistics of the fast path since the start of the daemon.
    pub fn fast_path(&self) -> Result<FastPathStats, bpf::Error> {
        self.0
            .as_ref()
            .map_or_else(|| Ok(FastPathStats::default()), |dataplane| dataplane.fast_path().stats())
    }

    /// Returns the statistics of XDP since the start of the daemon.
    pub fn xdp(&self) -> Result<XdpStats, bpf::Error> {
        self.0.as_ref().map_or_else(|| Ok(XdpStats::default()), |dataplane| dataplane.xdp().stats())
    }
}

//! The flow table: inspection and reset.

use std::collections::BTreeMap;

use gateway_common::maps as spec;
use gateway_common::verdict::Reason;
use gateway_common::wire::{FLOW_TICK_SHIFT, FlowKey, FlowValue};

use super::fast_path::EpochChange;
use super::flow_clock::ticks;
use super::maps::{Entries, HashTable};
use super::{Error, Programs};

/// Attempts to change a record that the program writes as well.
const ATTEMPTS: usize = 3;
/// No plan has this generation.
const NO_GENERATION: u32 = 0;

/// Reader of the flow table that works without [`Programs`].
pub struct FlowReader {
    flows4: HashTable<spec::Flows4>,
    flows6: HashTable<spec::Flows6>,
}

impl FlowReader {
    /// Returns the flows with a packet in the last `seconds`, by policy index and leg.
    pub fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, Error> {
        let now = u64::from(ticks());
        let oldest = now.saturating_sub((u64::from(seconds) * 1_000_000_000) >> FLOW_TICK_SHIFT);
        let chosen = [Reason::PolicyEgress, Reason::PolicyProxy, Reason::PolicyDirect, Reason::NoPolicy]
            .map(|reason| reason as u8);
        let mut flows = BTreeMap::new();
        let mut count = |flow: FlowValue| {
            if u64::from(flow.seen) >= oldest && chosen.contains(&flow.reason) {
                *flows.entry((flow.policy, flow.leg)).or_default() += 1;
            }
        };
        self.flows4.for_each(&mut count)?;
        self.flows6.for_each(&mut count)?;
        Ok(flows)
    }
}

impl Programs {
    pub fn flows(&self) -> Result<BTreeMap<FlowKey, FlowValue>, Error> {
        let short = self.maps.flows4.read()?.into_iter().map(|(key, value)| (key.into(), value));
        Ok(self.maps.flows6.read()?.into_iter().chain(short).collect())
    }

    pub fn flow(&self, key: &FlowKey) -> Result<Option<FlowValue>, Error> {
        match key.short() {
            Some(short) => self.maps.flows4.get(&short),
            None => self.maps.flows6.get(key),
        }
    }

    /// Deletes all flows and what they have begun to show. The programs evaluate their next packets as new flows.
    pub fn delete_flows(&mut self) -> Result<(), Error> {
        self.fast_path.invalidate(EpochChange::Flows)?;
        for key in self.maps.flows4.read()?.keys() {
            self.maps.flows4.remove(key)?;
        }
        for key in self.maps.flows6.read()?.keys() {
            self.maps.flows6.remove(key)?;
        }
        for key in self.maps.hellos.read()?.keys() {
            self.maps.hellos.remove(key)?;
        }
        // Packets that were evaluated before a deletion may have made entries.
        self.fast_path.invalidate(EpochChange::Flows)
    }

    /// Notes what a flow has shown: bits of [`flow_flags`](gateway_common::wire::flow_flags). The program evaluates its
    /// next packet again. Returns false if it has no record.
    pub fn note_in_flow(&mut self, key: &FlowKey, shown: u8) -> Result<bool, Error> {
        let seed = self.seed()?;
        for _ in 0..ATTEMPTS {
            let Some(flow) = self.flow(key)?.filter(|flow| flow.is_of(key, seed)) else { return Ok(false) };
            if flow.shown & shown == shown {
                return Ok(true);
            }
            let noted = FlowValue { shown: flow.shown | shown, generation: NO_GENERATION, ..flow };
            let noted = noted.sealed(key, seed);
            match key.short() {
                Some(short) => self.maps.flows4.put(&short, &noted)?,
                None => self.maps.flows6.put(key, &noted)?,
            }
        }
        Ok(true)
    }

    /// Returns the flow table with its own descriptors. A read takes long and must not block the plan.
    pub fn flow_reader(&self) -> Result<FlowReader, Error> {
        Ok(FlowReader { flows4: self.maps.flows4.try_clone()?, flows6: self.maps.flows6.try_clone()? })
    }

    /// Returns the round-robin counter of a policy.
    pub fn round_robin_counter(&self, policy: u32) -> Result<u64, Error> {
        self.maps.turns.get(policy)
    }
}

//! The flow table, for inspection and for starting over.

use std::collections::BTreeMap;

use gateway_common::verdict::Reason;
use gateway_common::wire::{FlowKey, FlowValue, MOMENT_SHIFT};

use super::learn::moment;
use super::maps::Entries;
use super::{Error, Programs};

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

    /// Forgets all flows: each is judged as a new one.
    pub fn forget_flows(&mut self) -> Result<(), Error> {
        for key in self.maps.flows4.read()?.keys() {
            self.maps.flows4.remove(key)?;
        }
        for key in self.maps.flows6.read()?.keys() {
            self.maps.flows6.remove(key)?;
        }
        Ok(())
    }

    /// Flows with a packet in the last so many seconds, by the number of their policy and their leg.
    pub fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, Error> {
        let now = u64::from(moment());
        let oldest = now.saturating_sub((u64::from(seconds) * 1_000_000_000) >> MOMENT_SHIFT);
        let chosen = [Reason::PolicyLeg as u8, Reason::PolicyProxy as u8];
        let values = self.maps.flows4.read()?.into_values().chain(self.maps.flows6.read()?.into_values());
        let mut flows = BTreeMap::new();
        for flow in values.filter(|flow| u64::from(flow.seen) >= oldest && chosen.contains(&flow.reason)) {
            *flows.entry((flow.policy, flow.leg)).or_default() += 1;
        }
        Ok(flows)
    }

    /// Turns that a policy's round robin has made.
    pub fn turns(&self, policy: u32) -> Result<u64, Error> {
        self.maps.turns.get(policy)
    }
}

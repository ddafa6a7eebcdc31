//! The flow table, for inspection and for starting over.

use std::collections::BTreeMap;

use gateway_common::wire::{FlowKey, FlowValue};

use super::maps::Entries;
use super::{Error, Programs};

impl Programs {
    pub fn flows(&self) -> Result<BTreeMap<FlowKey, FlowValue>, Error> {
        self.maps.flows.read()
    }

    pub fn flow(&self, key: &FlowKey) -> Result<Option<FlowValue>, Error> {
        self.maps.flows.get(key)
    }

    /// Forgets all flows: each is judged as a new one.
    pub fn forget_flows(&mut self) -> Result<(), Error> {
        for key in self.flows()?.keys() {
            self.maps.flows.remove(key)?;
        }
        Ok(())
    }

    /// Turns that a policy's round robin has made.
    pub fn turns(&self, policy: u32) -> Result<u64, Error> {
        self.maps.turns.get(policy)
    }
}

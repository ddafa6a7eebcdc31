//! The flow table, for inspection and for starting over.

use std::collections::BTreeMap;

use gateway_common::wire::{FlowKey, FlowValue};

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

    /// Turns that a policy's round robin has made.
    pub fn turns(&self, policy: u32) -> Result<u64, Error> {
        self.maps.turns.get(policy)
    }
}

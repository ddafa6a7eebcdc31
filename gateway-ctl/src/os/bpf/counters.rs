//! Reader of the counters that the programs maintain.

use std::collections::BTreeMap;

use gateway_common::maps::{BlockHits, MapSpec};
use gateway_common::verdict::Reason;
use gateway_common::wire::{BlockKey, CounterPage, CounterValue, counter_place};
use jiff::Timestamp;

use super::maps::CounterArray;
use super::packet_counts::{Counters, sum};
use super::{Error, Programs};

fn in_page<M: MapSpec<Value = CounterPage>>(
    counters: &CounterArray<M>,
    number: u32,
) -> Result<Counters, Error> {
    let (page, place) = counter_place(number);
    let values: Vec<CounterValue> = counters.get(page)?.iter().map(|page| page.0[place]).collect();
    Ok(sum(&values))
}

impl Programs {
    pub fn policy_counters(&self, number: u32) -> Result<Counters, Error> {
        in_page(&self.maps.policy_counters, number)
    }

    pub fn device_counters(&self, number: u32) -> Result<Counters, Error> {
        in_page(&self.maps.device_counters, number)
    }

    /// Returns the verdicts by reason, without reasons that never occurred.
    pub fn reason_counters(&self) -> Result<BTreeMap<Reason, Counters>, Error> {
        let mut all = BTreeMap::new();
        for number in 0..=u8::MAX {
            let Some(reason) = Reason::from_wire(number) else { break };
            let counters = sum(&self.maps.reason_counters.get(u32::from(number))?);
            if counters.packets > 0 {
                all.insert(reason, counters);
            }
        }
        Ok(all)
    }

    /// Returns the packets of flows that exceed the flow budget of their device. Such flows have no record.
    pub fn unrecorded(&self) -> Result<Counters, Error> {
        Ok(sum(&self.maps.unrecorded.get(0)?))
    }

    /// Returns the packets that the egress guard dropped, by interface index.
    pub fn prevented(&self) -> Result<BTreeMap<u32, Counters>, Error> {
        Ok(self.maps.prevented.read()?.into_iter().map(|(index, values)| (index, sum(&values))).collect())
    }

    /// Returns the forwarded packets that left past the egress guard, by interface index.
    pub fn escaped(&self) -> Result<BTreeMap<u32, Counters>, Error> {
        Ok(self.maps.escaped.read()?.into_iter().map(|(index, values)| (index, sum(&values))).collect())
    }

    /// Returns the blocked packets by device, policy and reason.
    pub fn block_hits(&self) -> Result<BTreeMap<BlockKey, Counters>, Error> {
        Ok(self.maps.block_hits.read()?.into_iter().map(|(key, values)| (key, sum(&values))).collect())
    }

    /// Returns the time since which the counters count, or `None` if their pin is gone.
    pub fn counting_since(&self) -> Option<Timestamp> {
        let pin = self.root.join("maps").join(BlockHits::NAME);
        std::fs::metadata(pin).ok()?.modified().ok()?.try_into().ok()
    }
}

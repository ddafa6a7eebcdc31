//! Reader of the counters that the programs maintain.
//!
//! The programs log packets and move a full log of 64 into the counters. A reader adds the log to the counter, and
//! reads again if the log was emptied meanwhile; `bpftool` shows counters without it. Rejected: to empty the log where
//! it gets full, because the verifier follows the loop at each of four calls.

use std::collections::BTreeMap;

use gateway_common::maps::{BlockHits, CounterLogs, MapSpec};
use gateway_common::verdict::Reason;
use gateway_common::wire::{
    BlockKey, CounterPage, CounterValue, LoggedPacket, count_with_log, counter_place,
};
use jiff::Timestamp;

use super::maps::CounterArray;
use super::packet_counts::{Counters, sum};
use super::{Error, Programs};

/// Reads of a counter until the log of each processor was not emptied during one of them.
const MAX_READS: usize = 16;

/// Returns a counter with the packets of the logs. `field` is the number of a packet that the counter is for.
fn in_page<M: MapSpec<Value = CounterPage>>(
    logs: &CounterArray<CounterLogs>,
    counters: &CounterArray<M>,
    number: u32,
    field: fn(&LoggedPacket) -> u32,
) -> Result<Counters, Error> {
    let (page, place) = counter_place(number);
    let mut before = logs.get(0)?;
    let mut values: Vec<Option<CounterValue>> = vec![None; before.len()];
    let mut pages = Vec::new();
    for _ in 0..MAX_READS {
        pages = counters.get(page)?;
        let after = logs.get(0)?;
        for (cpu, value) in values.iter_mut().enumerate().filter(|(_, value)| value.is_none()) {
            *value = count_with_log(&before[cpu], pages[cpu].0[place], &after[cpu], number, field);
        }
        if values.iter().all(Option::is_some) {
            break;
        }
        before = after;
    }
    // A log that is emptied this often lacks a few packets of very many.
    let counted: Vec<CounterValue> =
        values.iter().zip(&pages).map(|(value, page)| value.unwrap_or(page.0[place])).collect();
    Ok(sum(&counted))
}

impl Programs {
    pub fn policy_counters(&self, number: u32) -> Result<Counters, Error> {
        in_page(&self.maps.counter_log, &self.maps.policy_counters, number, |packet| packet.policy)
    }

    pub fn device_counters(&self, number: u32) -> Result<Counters, Error> {
        in_page(&self.maps.counter_log, &self.maps.device_counters, number, |packet| packet.device)
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

    /// Forgets the blocked packets of all devices.
    pub fn clear_block_hits(&mut self) -> Result<(), Error> {
        self.maps.block_hits.clear()
    }

    /// Returns the time since which the counters count, or `None` if their pin is gone.
    pub fn counting_since(&self) -> Option<Timestamp> {
        let pin = self.root.join("maps").join(BlockHits::NAME);
        std::fs::metadata(pin).ok()?.modified().ok()?.try_into().ok()
    }
}

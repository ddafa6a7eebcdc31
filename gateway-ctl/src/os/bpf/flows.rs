//! The flow table: inspection and reset.
//!
//! A device has a budget of new records in each window of 69 s, because one host with a million flows evicted the
//! records of all others, and a split flow without a record changes its leg and breaks. Beyond the budget, source and
//! destination select the leg, also in the next window: a flow without a record cannot be distinguished from a new one.
//! DNS-learned addresses do not expire for such flows. The count is not atomic between processors, so a budget may
//! admit a few more.
//!
//! Decision 0132 says how the records are stored, and why.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway_common::maps::{self as spec, MapSpec};
use gateway_common::verdict::Reason;
use gateway_common::wire::{
    FLOW_PLACES, FLOW_TICK_SHIFT, FlowKey, FlowPlaces, FlowRecord, FlowRecord4, FlowRecord6, FlowValue,
    flow_bucket,
};
use gateway_core::indexes::{LegId, PolicyIndex};

use super::fast_path::EpochChange;
use super::flow_clock::ticks;
use super::maps::{ArrayMap, Entries as _};
use super::table_use::TableUse;
use super::{Error, Programs};

/// Attempts to change a record that the program writes as well.
const ATTEMPTS: usize = 3;
/// Ticks by which the clock of another processor may be ahead.
const CLOCK_SKEW: u16 = 2;
/// No plan has this generation.
const NO_GENERATION: u32 = 0;

/// One of the two tables, as the maps of its buckets.
struct Table<'a, R: FlowRecord, M, P>
where
    M: MapSpec<Value = [R; FLOW_PLACES]>,
    P: MapSpec<Value = FlowPlaces>,
{
    records: &'a ArrayMap<M>,
    places: &'a ArrayMap<P>,
}

impl<R: FlowRecord, M, P> Table<'_, R, M, P>
where
    M: MapSpec<Value = [R; FLOW_PLACES]>,
    P: MapSpec<Value = FlowPlaces>,
{
    /// Visits the records, in memory of the kernel: the table is large, and mostly empty.
    fn for_each(&self, visit: &mut impl FnMut(FlowKey, FlowValue, u64)) -> Result<(), Error> {
        let (places, records) = (self.places.mapped()?, self.records.mapped()?);
        for bucket in 0..M::CAPACITY as usize {
            let places: FlowPlaces = places.read(bucket * size_of::<FlowPlaces>());
            if places.tags == [0; FLOW_PLACES] {
                continue;
            }
            let first = bucket * size_of::<M::Value>();
            for (place, _) in places.tags.iter().enumerate().filter(|(_, tag)| **tag != 0) {
                let record: R = records.read(first + place * size_of::<R>());
                visit((*record.key()).into(), *record.value(), record.denied_traffic());
            }
        }
        Ok(())
    }

    /// Counts the records of flows with a packet in the last ticks.
    fn count_recent(&self, now: u32, ticks: u16) -> Result<TableUse, Error> {
        let (places, mut entries) = (self.places.mapped()?, 0);
        for bucket in 0..P::CAPACITY as usize {
            let places: FlowPlaces = places.read(bucket * size_of::<FlowPlaces>());
            entries += count_recent(&places, now, ticks);
        }
        Ok(TableUse { entries, capacity: u64::from(P::CAPACITY) * FLOW_PLACES as u64 })
    }

    /// Returns the record of a flow, and the offset of its value in the map.
    fn find(&self, hash: u64, key: &R::Key) -> Result<Option<(FlowValue, usize)>, Error> {
        let index = flow_bucket(hash, M::CAPACITY);
        let (places, records) = (self.places.get(index)?, self.records.get(index)?);
        let Some(place) = places.find(&records, hash, key) else { return Ok(None) };
        let value = records[place].value();
        let within = std::ptr::from_ref(value).addr() - std::ptr::from_ref(&records).addr();
        let offset = index as usize * size_of::<M::Value>() + within;
        Ok(Some((*value, offset)).filter(|(value, _)| value.is_of(hash)))
    }
}

fn count_recent(places: &FlowPlaces, now: u32, ticks: u16) -> u64 {
    let pairs = places.tags.iter().zip(places.seen);
    // A clock that is ahead wraps to a large age.
    let is_recent = |seen: u16| (now as u16).wrapping_add(CLOCK_SKEW).wrapping_sub(seen) <= ticks;
    pairs.filter(|(tag, seen)| **tag != 0 && is_recent(*seen)).count() as u64
}

/// Reader of the flow table that works without [`Programs`].
pub struct FlowReader {
    flows4: ArrayMap<spec::Flows4>,
    flows6: ArrayMap<spec::Flows6>,
    flow_places4: ArrayMap<spec::FlowPlaces4>,
    flow_places6: ArrayMap<spec::FlowPlaces6>,
}

impl FlowReader {
    /// Returns the use of the tables by flows with a packet in the last `seconds`: that of IPv4, and that of all other
    /// flows. Records of flows that have ended stay, and give way first.
    pub fn recent_use(&self, seconds: u16) -> Result<[TableUse; 2], Error> {
        let age = (u64::from(seconds) * 1_000_000_000) >> FLOW_TICK_SHIFT;
        let (now, age) = (ticks(), u16::try_from(age).unwrap_or(u16::MAX));
        Ok([
            Table { records: &self.flows4, places: &self.flow_places4 }.count_recent(now, age)?,
            Table { records: &self.flows6, places: &self.flow_places6 }.count_recent(now, age)?,
        ])
    }

    /// Calls `visit` with the records of the flows that had a denied packet, or a packet in the last `seconds`; with the
    /// word that counts denied packets, and with their age. `seed` is [`Programs::flow_seed`].
    pub fn recent(
        &self,
        seconds: u16,
        seed: u32,
        mut visit: impl FnMut(FlowKey, FlowValue, u64, Duration),
    ) -> Result<(), Error> {
        let now = ticks();
        let oldest = u64::from(now).saturating_sub((u64::from(seconds) * 1_000_000_000) >> FLOW_TICK_SHIFT);
        let mut visit = |key: FlowKey, flow: FlowValue, denied: u64| {
            // A program may have written it meanwhile.
            if (denied != 0 || u64::from(flow.seen) >= oldest) && flow.is_of(key.hash(seed)) {
                let age = u64::from(now.saturating_sub(flow.seen));
                visit(key, flow, denied, Duration::from_nanos(age << FLOW_TICK_SHIFT));
            }
        };
        Table { records: &self.flows4, places: &self.flow_places4 }.for_each(&mut visit)?;
        Table { records: &self.flows6, places: &self.flow_places6 }.for_each(&mut visit)
    }

    /// Returns the flows with a packet in the last `seconds`, by policy index and leg.
    pub fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(Option<PolicyIndex>, LegId), u64>, Error> {
        let now = u64::from(ticks());
        let oldest = now.saturating_sub((u64::from(seconds) * 1_000_000_000) >> FLOW_TICK_SHIFT);
        let chosen = [Reason::PolicyEgress, Reason::PolicyProxy, Reason::PolicyDirect, Reason::NoPolicy]
            .map(|reason| reason as u8);
        let mut flows = BTreeMap::new();
        let mut count = |_, flow: FlowValue, _| {
            if u64::from(flow.seen) >= oldest
                && chosen.contains(&flow.reason)
                && let Some(leg) = LegId::new(flow.leg)
            {
                *flows.entry((PolicyIndex::new(flow.policy), leg)).or_default() += 1;
            }
        };
        Table { records: &self.flows4, places: &self.flow_places4 }.for_each(&mut count)?;
        Table { records: &self.flows6, places: &self.flow_places6 }.for_each(&mut count)?;
        Ok(flows)
    }
}

impl Programs {
    fn table4(&self) -> Table<'_, FlowRecord4, spec::Flows4, spec::FlowPlaces4> {
        Table { records: &self.maps.flows4, places: &self.maps.flow_places4 }
    }

    fn table6(&self) -> Table<'_, FlowRecord6, spec::Flows6, spec::FlowPlaces6> {
        Table { records: &self.maps.flows6, places: &self.maps.flow_places6 }
    }

    /// Returns the wanted ones of all records, those of former generations included.
    pub fn flows(
        &self,
        wanted: impl Fn(&FlowKey, &FlowValue) -> bool,
    ) -> Result<Vec<(FlowKey, FlowValue)>, Error> {
        let (seed, mut flows) = (self.seed()?, Vec::new());
        let mut add = |key: FlowKey, value: FlowValue, _| {
            // A program may have written it meanwhile.
            if wanted(&key, &value) && value.is_of(key.hash(seed)) {
                flows.push((key, value));
            }
        };
        self.table4().for_each(&mut add)?;
        self.table6().for_each(&mut add)?;
        Ok(flows)
    }

    pub fn flow(&self, key: &FlowKey) -> Result<Option<FlowValue>, Error> {
        Ok(self.find_flow(key)?.map(|(value, _)| value))
    }

    fn find_flow(&self, key: &FlowKey) -> Result<Option<(FlowValue, usize)>, Error> {
        let hash = key.hash(self.seed()?);
        match key.short() {
            Some(short) => self.table4().find(hash, &short),
            None => self.table6().find(hash, key),
        }
    }

    /// Deletes all flows and what they have begun to show. The programs evaluate their next packets as new flows.
    pub fn delete_flows(&mut self) -> Result<(), Error> {
        self.fast_path.invalidate(EpochChange::Flows)?;
        // No search finds a record without a tag.
        self.maps.flow_places4.clear()?;
        self.maps.flow_places6.clear()?;
        for key in self.maps.hellos.read()?.keys() {
            self.maps.hellos.remove(key)?;
        }
        // Packets that were evaluated before a deletion may have made entries.
        self.fast_path.invalidate(EpochChange::Flows)
    }

    /// Notes what a flow has shown: bits of [`flow_flags`](gateway_common::wire::flow_flags). The program evaluates its
    /// next packet again. Returns false if it has no record.
    pub fn note_in_flow(&mut self, key: &FlowKey, shown: u8) -> Result<bool, Error> {
        let hash = key.hash(self.seed()?);
        for _ in 0..ATTEMPTS {
            let Some((flow, offset)) = self.find_flow(key)? else { return Ok(false) };
            if flow.shown & shown == shown {
                return Ok(true);
            }
            let noted = FlowValue { shown: flow.shown | shown, generation: NO_GENERATION, ..flow };
            let noted = noted.sealed(hash);
            let words: &[u32; 8] = zerocopy::transmute_ref!(&noted);
            // Nothing but this record: the program writes the others of the bucket.
            match key.short() {
                Some(_) => self.maps.flows4.write_in_place(offset, words)?,
                None => self.maps.flows6.write_in_place(offset, words)?,
            }
        }
        Ok(true)
    }

    /// Returns the secret of the digests in the flow table, for [`FlowReader::recent`].
    pub fn flow_seed(&self) -> Result<u32, Error> {
        self.seed()
    }

    /// Returns the flow table with its own descriptors. A read takes long and must not block the plan.
    pub fn flow_reader(&self) -> Result<FlowReader, Error> {
        Ok(FlowReader {
            flows4: self.maps.flows4.try_clone()?,
            flows6: self.maps.flows6.try_clone()?,
            flow_places4: self.maps.flow_places4.try_clone()?,
            flow_places6: self.maps.flow_places6.try_clone()?,
        })
    }

    /// Returns the round-robin counter of a policy.
    pub fn round_robin_counter(&self, policy: u32) -> Result<u64, Error> {
        self.maps.turns.get(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_count_while_their_flow_sends() {
        let now = 0x0007_0003_u32;
        let mut places = FlowPlaces::default();
        assert_eq!(count_recent(&places, now, 100), 0, "no records");
        for (place, age) in [0, 50, 98, 99, 300, 60_000].into_iter().enumerate() {
            places.tags[place] = 9;
            places.seen[place] = (now as u16).wrapping_sub(age);
        }
        assert_eq!(count_recent(&places, now, 100), 3);
        places.seen[4] = (now as u16).wrapping_add(1);
        assert_eq!(count_recent(&places, now, 100), 4, "a clock that is ahead");
    }
}

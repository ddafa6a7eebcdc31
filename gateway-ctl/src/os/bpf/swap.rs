//! Plan activation: writes the plan beside the active one, flips one byte, waits for packets in flight.
//!
//! Decision 0001 says why.

use std::collections::BTreeMap;

use gateway_common::maps::{POLICIES, action_index};
use gateway_common::wire::*;
use gateway_core::fqdn_cache::Key;
use gateway_core::plan::Dataplane;
use gateway_core::prefix_filter::PrefixFilter;

use super::fast_path::EpochChange;
use super::flow_clock::ticks;
use super::grace::grace;
use super::maps::Entries;
use super::slot::PlanSlot;
use super::tables::{Tables, Visit};
use super::{Error, Programs};

/// Result of a swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swap {
    pub generation: u32,
    /// False if the active plan already was the wanted one.
    pub changed: bool,
    pub puts: usize,
    pub removes: usize,
}

impl Programs {
    /// Returns the active slot. `None` is default deny.
    pub fn live(&self) -> Result<Option<PlanSlot>, Error> {
        Ok(PlanSlot::of_wire(self.maps.live.get(0)?))
    }

    /// Returns the generation of the active plan, 0 without one.
    pub fn generation(&self) -> Result<u32, Error> {
        match self.live()? {
            None => Ok(0),
            Some(slot) => Ok(self.maps.plans.get(slot.get())?.generation),
        }
    }

    /// Returns the generation of the newest plan in the maps, live or not; 0 without one.
    pub fn newest_generation(&self) -> Result<u32, Error> {
        let [first, second] =
            PlanSlot::ALL.map(|slot| self.maps.plans.get(slot.get()).map(|plan| plan.generation));
        Ok(first?.max(second?))
    }

    /// Gives the next plan this generation or a later one.
    pub fn number_from(&mut self, lowest: u32) {
        self.lowest_generation = lowest;
    }

    /// Returns to default deny: everything from the LAN is blocked.
    pub fn deny_all(&mut self) -> Result<(), Error> {
        self.maps.live.set(0, SLOT_NONE)?;
        self.fast_path.invalidate(EpochChange::Plan)?;
        grace()
    }

    /// Activates `plan`, atomically for every packet. Does nothing if it is already active.
    pub fn apply(&mut self, plan: &Dataplane) -> Result<Swap, Error> {
        if let Some(live) = self.live()?
            && self.is_in(plan, live)?
        {
            let generation = self.maps.plans.get(live.get())?.generation;
            return Ok(Swap { generation, ..Swap::default() });
        }
        self.activate(plan)
    }

    /// Activates `plan`, atomically for every packet, without a comparison with the active one. Writes the differences
    /// to the plan that this process has written into the slot before. Reading the maps takes most of the time of an
    /// apply, so the caller compares them afterwards, by [`apply`](Self::apply): a difference that another program
    /// left in the slot comes into force with the plan.
    pub fn activate(&mut self, plan: &Dataplane) -> Result<Swap, Error> {
        if plan.actions.len() > POLICIES as usize {
            return Err(Error::TooManyPolicies { count: plan.actions.len(), limit: POLICIES });
        }
        let target = PlanSlot::next(self.live()?);
        let generation = self.newest_generation()?.wrapping_add(1).max(self.lowest_generation).max(1);
        let mut swap = Swap { generation, changed: true, ..Swap::default() };
        let reported = slotted(target, self.learned.under(plan, ticks()));
        let header = PlanValue { generation, seed: self.seed()?, ..plan.header };
        // After a failure, what the slot holds is not known.
        let have = self.written.take(target);
        let tables = Tables::new(plan, target);
        tables.each(&mut self.maps, have.as_ref(), &mut Write { swap: &mut swap })?;
        Write { swap: &mut swap }
            .visit(&mut self.maps.domains, &reported, None, |key| key.slot == target.get())?;
        if let Some(first) = action_index(target.get(), 0) {
            self.maps.actions.write_from(first, &plan.actions)?;
        }
        self.write_filter(&PrefixFilter::new(plan), target)?;
        self.maps.plans.set(target.get(), header)?;
        self.written.note(tables);
        // Both slots share these maps: additions come before the flip, removals after it.
        let (authorised, legs) = (self.maps.authorised.read()?, self.maps.egress_legs.read()?);
        put_missing(&mut self.maps.authorised, &authorised, &plan.authorised)?;
        put_missing(&mut self.maps.egress_legs, &legs, &plan.egress_legs)?;
        self.maps.live.set(0, target.get())?;
        // Entries of the fast path have the generation of their plan. The epoch ends them in any case.
        self.fast_path.invalidate(EpochChange::Plan)?;
        grace()?;
        remove_excess(&mut self.maps.authorised, &authorised, &plan.authorised)?;
        remove_excess(&mut self.maps.egress_legs, &legs, &plan.egress_legs)?;
        Ok(swap)
    }

    /// Returns the secret of the digests in the flow table. It reuses that of earlier plans, so that flows outlive a
    /// swap.
    pub(super) fn seed(&self) -> Result<u32, Error> {
        for slot in PlanSlot::ALL {
            let seed = self.maps.plans.get(slot.get())?.seed;
            if seed != 0 {
                return Ok(seed);
            }
        }
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.into()))?;
        Ok(u32::from_ne_bytes(bytes) | 1)
    }

    /// Reports whether a slot holds `plan`. Stops at the first map that differs.
    fn is_in(&mut self, plan: &Dataplane, slot: PlanSlot) -> Result<bool, Error> {
        let header = self.maps.plans.get(slot.get())?;
        let PlanValue { generation, seed, .. } = header;
        if header != (PlanValue { generation, seed, ..plan.header })
            || plan.actions.len() > POLICIES as usize
            || !self.learned.is_under(&plan.domains)
            || self.maps.authorised.read()? != plan.authorised
            || self.maps.egress_legs.read()? != plan.egress_legs
        {
            return Ok(false);
        }
        let mut compare = Compare { is_same: true };
        let tables = Tables::new(plan, slot);
        tables.each(&mut self.maps, None, &mut compare)?;
        if !compare.is_same {
            self.written.take(slot);
            return Ok(false);
        }
        self.written.note(tables);
        let Some(first) = action_index(slot.get(), 0) else { return Ok(false) };
        if self.maps.actions.read_from(first, plan.actions.len())? != plan.actions {
            return Ok(false);
        }
        self.has_filter(&PrefixFilter::new(plan), slot)
    }

    fn write_filter(&mut self, filter: &PrefixFilter, slot: PlanSlot) -> Result<(), Error> {
        self.maps.prefix_levels.set(slot.get(), filter.levels)?;
        for (index, page) in filter_pages(filter, slot) {
            if self.maps.prefix_bits.get(index)? != *page {
                self.maps.prefix_bits.set(index, *page)?;
            }
        }
        Ok(())
    }

    fn has_filter(&self, filter: &PrefixFilter, slot: PlanSlot) -> Result<bool, Error> {
        if self.maps.prefix_levels.get(slot.get())? != filter.levels {
            return Ok(false);
        }
        for (index, page) in filter_pages(filter, slot) {
            if self.maps.prefix_bits.get(index)? != *page {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the pages of a filter with their indexes in the map.
fn filter_pages(filter: &PrefixFilter, slot: PlanSlot) -> impl Iterator<Item = (u32, &FilterPage)> {
    (0..)
        .zip(&filter.pages)
        .filter_map(move |(page, bits)| Some((filter_page_index(slot.get(), page)?, bits)))
}

fn put_missing<E: Entries>(
    map: &mut E,
    have: &BTreeMap<E::Key, E::Value>,
    want: &BTreeMap<E::Key, E::Value>,
) -> Result<(), Error> {
    for (key, value) in want.iter().filter(|(key, value)| have.get(key) != Some(value)) {
        map.put(key, value)?;
    }
    Ok(())
}

fn remove_excess<E: Entries>(
    map: &mut E,
    have: &BTreeMap<E::Key, E::Value>,
    want: &BTreeMap<E::Key, E::Value>,
) -> Result<(), Error> {
    for key in have.keys().filter(|key| !want.contains_key(key)) {
        map.remove(key)?;
    }
    Ok(())
}

struct Write<'a> {
    swap: &'a mut Swap,
}

impl Visit for Write<'_> {
    fn visit<E: Entries>(
        &mut self,
        map: &mut E,
        want: &BTreeMap<E::Key, E::Value>,
        have: Option<&BTreeMap<E::Key, E::Value>>,
        ours: impl Fn(&E::Key) -> bool,
    ) -> Result<(), Error> {
        let read;
        let have = match have {
            Some(have) => have,
            None => {
                read = map.read()?;
                &read
            }
        };
        let excess = have.keys().filter(|key| ours(key) && !want.contains_key(key));
        let excess: Vec<E::Key> = excess.copied().collect();
        let missing = want.iter().filter(|(key, value)| have.get(key) != Some(value));
        let missing: Vec<(E::Key, E::Value)> = missing.map(|(key, value)| (*key, *value)).collect();
        // Removing first frees capacity in a map that is nearly full.
        map.remove_all(&excess)?;
        map.put_all(&missing)?;
        self.swap.removes += excess.len();
        self.swap.puts += missing.len();
        Ok(())
    }
}

struct Compare {
    is_same: bool,
}

impl Visit for Compare {
    fn visit<E: Entries>(
        &mut self,
        map: &mut E,
        want: &BTreeMap<E::Key, E::Value>,
        _have: Option<&BTreeMap<E::Key, E::Value>>,
        ours: impl Fn(&E::Key) -> bool,
    ) -> Result<(), Error> {
        if !self.is_same {
            return Ok(());
        }
        let mut have = map.read()?;
        have.retain(|key, _| ours(key));
        self.is_same = have == *want;
        Ok(())
    }
}

/// Returns the entries with the keys of a slot.
pub(super) fn slotted(
    slot: PlanSlot,
    reported: BTreeMap<Key, FqdnIpValue>,
) -> BTreeMap<FqdnIpKey, FqdnIpValue> {
    let slot = slot.get();
    reported
        .into_iter()
        .map(|((client, address), value)| (FqdnIpKey { slot, client, address }, value))
        .collect()
}

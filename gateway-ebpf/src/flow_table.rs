//! Flow table: buckets of records by the hash of their key.

use core::hint::black_box;
use core::intrinsics::{AtomicOrdering, atomic_xadd};

use gateway_common::maps::{self as spec, MapSpec, Wire};
use gateway_common::wire::*;

use crate::{maps, words};

/// A record of one of the two tables.
trait Record: FlowRecord<Key: Wire> {
    fn bucket(hash: u64) -> Option<*mut [Self; FLOW_PLACES]>;
    fn places(hash: u64) -> Option<*mut FlowPlaces>;
    /// Returns the place for the record of a new flow.
    fn oldest(hash: u64, now: u32) -> usize;
}

impl Record for FlowRecord4 {
    #[inline(always)]
    fn bucket(hash: u64) -> Option<*mut [Self; FLOW_PLACES]> {
        maps::FLOWS4.get_ptr_mut(flow_bucket(hash, spec::Flows4::CAPACITY))
    }

    #[inline(always)]
    fn places(hash: u64) -> Option<*mut FlowPlaces> {
        maps::FLOW_PLACES4.get_ptr_mut(flow_bucket(hash, spec::Flows4::CAPACITY))
    }

    #[inline(always)]
    fn oldest(hash: u64, now: u32) -> usize {
        gw_oldest_flow4(hash, now) as usize
    }
}

impl Record for FlowRecord6 {
    #[inline(always)]
    fn bucket(hash: u64) -> Option<*mut [Self; FLOW_PLACES]> {
        maps::FLOWS6.get_ptr_mut(flow_bucket(hash, spec::Flows6::CAPACITY))
    }

    #[inline(always)]
    fn places(hash: u64) -> Option<*mut FlowPlaces> {
        maps::FLOW_PLACES6.get_ptr_mut(flow_bucket(hash, spec::Flows6::CAPACITY))
    }

    #[inline(always)]
    fn oldest(hash: u64, now: u32) -> usize {
        gw_oldest_flow6(hash, now) as usize
    }
}

/// Reads the record of a flow. Returns false if it has none.
#[inline(always)]
pub fn read(key: &FlowKey, hash: u64, value: &mut FlowValue) -> bool {
    match key.short() {
        Some(short) => gw_read_flow4(hash, &short, value) != 0,
        None => gw_read_flow6(hash, key, value) != 0,
    }
}

/// Writes the record of a flow, in place of one that it had.
#[inline(always)]
pub fn write(key: &FlowKey, hash: u64, value: &FlowValue) {
    match key.short() {
        Some(short) => gw_write_flow4(hash, &short, value),
        None => gw_write_flow6(hash, key, value),
    };
}

/// Counts a packet of this length in the record of its flow, if it has one.
#[inline(always)]
pub fn count_denied(key: &FlowKey, hash: u64, length: u32) {
    match key.short() {
        Some(short) => gw_count_denied4(hash, &short, length),
        None => gw_count_denied6(hash, key, length),
    };
}

// The verifier follows these once, because they are global functions. They must reckon with null, for which they
// do nothing.

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_read_flow4(hash: u64, key: *const ShortFlowKey, value: *mut FlowValue) -> u32 {
    read_in::<FlowRecord4>(hash, key, value).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_read_flow6(hash: u64, key: *const FlowKey, value: *mut FlowValue) -> u32 {
    read_in::<FlowRecord6>(hash, key, value).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_write_flow4(hash: u64, key: *const ShortFlowKey, value: *const FlowValue) -> u32 {
    write_in::<FlowRecord4>(hash, key, value).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_write_flow6(hash: u64, key: *const FlowKey, value: *const FlowValue) -> u32 {
    write_in::<FlowRecord6>(hash, key, value).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_count_denied4(hash: u64, key: *const ShortFlowKey, length: u32) -> u32 {
    count_denied_in::<FlowRecord4>(hash, key, length).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_count_denied6(hash: u64, key: *const FlowKey, length: u32) -> u32 {
    count_denied_in::<FlowRecord6>(hash, key, length).is_some() as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_oldest_flow4(hash: u64, now: u32) -> u32 {
    oldest_in::<FlowRecord4>(hash, now).unwrap_or(FLOW_PLACES) as u32
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_oldest_flow6(hash: u64, now: u32) -> u32 {
    oldest_in::<FlowRecord6>(hash, now).unwrap_or(FLOW_PLACES) as u32
}

#[inline(always)]
fn oldest_in<R: Record>(hash: u64, now: u32) -> Option<usize> {
    // SAFETY: the pointer is to a value of the map. Others may write to it; all bit patterns are valid.
    let places = unsafe { &*R::places(hash)? };
    Some(places.oldest(now))
}

#[inline(always)]
fn read_in<R: Record>(hash: u64, key: *const R::Key, value: *mut FlowValue) -> Option<()> {
    // SAFETY: what is not null is a reference of the caller.
    let (key, value) = unsafe { (key.as_ref()?, value.as_mut()?) };
    // SAFETY: as above.
    let (places, records) = unsafe { (&*R::places(hash)?, &*R::bucket(hash)?) };
    let place = one_register(places.find(records, hash, key)?)?;
    // Again if another processor has written it meanwhile.
    let mut attempt = 0;
    while attempt < 2 {
        // SAFETY: both are references.
        unsafe { words::copy(records[place].value(), value) };
        if value.is_of(hash) {
            return Some(());
        }
        attempt += 1;
    }
    None
}

#[inline(always)]
fn write_in<R: Record>(hash: u64, key: *const R::Key, value: *const FlowValue) -> Option<()> {
    // SAFETY: as above.
    let (key, value) = unsafe { (key.as_ref()?, value.as_ref()?) };
    // SAFETY: as above.
    let (places, records) = unsafe { (&mut *R::places(hash)?, &mut *R::bucket(hash)?) };
    let found = places.find(records, hash, key);
    let place = match found {
        Some(place) => place,
        None => R::oldest(hash, value.seen),
    };
    let place = one_register(place)?;
    if found.is_none() {
        // What was counted is of the flow that gives way.
        *records[place].denied() = [0; 2];
    }
    let (old_key, old_value) = records[place].parts();
    // SAFETY: all are references.
    unsafe {
        words::copy(key, old_key);
        words::copy(value, old_value);
    }
    places.tags[place] = flow_tag(hash);
    places.seen[place] = value.seen as u16;
    Some(())
}

#[inline(always)]
fn count_denied_in<R: Record>(hash: u64, key: *const R::Key, length: u32) -> Option<()> {
    // SAFETY: as above.
    let (key, places, records) = unsafe { (key.as_ref()?, &*R::places(hash)?, &mut *R::bucket(hash)?) };
    let place = one_register(places.find(records, hash, key)?)?;
    let word = (&raw mut *records[place].denied()).cast::<u64>();
    // SAFETY: the word is in the map, at a multiple of eight bytes. Other processors add to it, too.
    unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(word, fast_traffic(length)) };
    Some(())
}

/// Returns the number of a place that is compared in the register in which it is used, as the verifier wants it.
#[inline(always)]
fn one_register(place: usize) -> Option<usize> {
    let place = black_box(place);
    if place < FLOW_PLACES { Some(place) } else { None }
}

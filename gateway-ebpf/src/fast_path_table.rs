//! Tables of the fast path: buckets of entries by the hash of their key, and the actions that entries share.
//!
//! Writers do not exclude each other. Two that write one place leave an entry or an action whose digest is of neither, so
//! no packet uses it.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use gateway_common::fast_path::entry::{Leaving, Pair, Validity, is_free};
use gateway_common::fast_path::hash;
use gateway_common::fast_path::header::{Family, Head, V4, V6};
use gateway_common::fast_path::key::Key;
use gateway_common::maps::{self as spec, MapSpec};
use gateway_common::wire::{
    FAST_PLACES, FastAction, FastReplaced, FastState, FastTags, FastTraffic, fast_traffic,
};

use crate::{maps, words};

/// Data that does not fit on the stack, as in [`ingress`](mod@crate::ingress).
pub struct Workspace<F: Family> {
    pub head: Head,
    pub header: F::Header,
    pub key: Key<F::Address>,
    /// The key after the rewrite.
    pub after: Key<F::Address>,
    pub state: FastState,
    pub action: FastAction,
    pub frame: F::Frame,
    /// Number of a place in a bucket, read and written as if another processor did so too: the verifier does not know
    /// its value then, and follows one path instead of one for each place.
    pub place: u32,
    pub leaving: Leaving<F::Address>,
    pub pair: Pair<F::Address>,
}

#[map(name = "gw_fast_work4")]
static WORKSPACE4: PerCpuArray<Workspace<V4>> = PerCpuArray::with_max_entries(1, 0);
#[map(name = "gw_fast_work6")]
static WORKSPACE6: PerCpuArray<Workspace<V6>> = PerCpuArray::with_max_entries(1, 0);

/// Number of places where an action may be, from the one of its hash on.
const ACTION_PLACES: u32 = 4;

/// The table of a family.
pub trait Table: Family + Sized {
    fn workspace() -> Option<*mut Workspace<Self>>;
    fn bucket(hash: u64) -> Option<*mut [Self::Entry; FAST_PLACES]>;
    fn tags(hash: u64) -> Option<*mut FastTags>;
    fn traffic(hash: u64) -> Option<*mut FastTraffic>;
    /// Returns the number of a bucket.
    fn number(hash: u64) -> u32;

    /// Returns the entry of a key.
    #[inline(always)]
    fn find(hash: u64, key: &Key<Self::Address>, place: &mut u32) -> Option<*mut Self::Entry> {
        // SAFETY: the pointer is to a value of the map.
        let (tags, tag) = (unsafe { *Self::tags(hash)? }, hash::tag(hash));
        if !tags.may_have(tag) {
            return None;
        }
        let bucket = Self::bucket(hash)?;
        // SAFETY: as above.
        let is_of = |index: usize| Self::is_of(unsafe { &(*bucket)[index] }, key);
        let found = choose(place, hash, |index| tags.at(index) == tag && is_of(index));
        // SAFETY: the number is below that of the places.
        found.map(|index| unsafe { bucket.cast::<Self::Entry>().add(index) })
    }

    /// Writes an entry to the place of its flow, or else to a free one. Returns false if there is none.
    #[inline(always)]
    fn insert(
        hash: u64,
        key: &Key<Self::Address>,
        state: &FastState,
        now: &Validity,
        place: &mut u32,
    ) -> bool {
        let (Some(bucket), Some(tags)) = (Self::bucket(hash), Self::tags(hash)) else { return false };
        // SAFETY: the pointer is to a value of the map.
        let found = choose(place, hash, |index| Self::is_of(unsafe { &(*bucket)[index] }, key));
        let found = found.or_else(|| {
            // SAFETY: as above.
            let free = choose(place, hash, |index| is_free(Self::state(unsafe { &(*bucket)[index] }), now))?;
            report_replaced::<Self>(hash, free as u32);
            Some(free)
        });
        let Some(index) = found else { return false };
        // SAFETY: the number is below that of the places.
        unsafe {
            words::copy(&Self::entry(key, state), bucket.cast::<Self::Entry>().add(index));
            // One byte: another processor may write that of another place.
            tags.cast::<u8>().add(index).write(hash::tag(hash));
        }
        true
    }

    /// Counts a packet of the entry that [`find`](Self::find) has returned last, by the length of its IP packet.
    #[inline(always)]
    fn count(hash: u64, place: &mut u32, length: u32) {
        let Some(traffic) = Self::traffic(hash) else { return };
        // SAFETY: the pointer is from a reference.
        let step = unsafe { (&raw mut *place).read_volatile() } as usize;
        let index = (hash::first_place(hash) + step) & (FAST_PLACES - 1);
        // SAFETY: the number is below that of the places, and the words are aligned.
        unsafe {
            let word = traffic.cast::<u64>().add(index);
            atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(word, fast_traffic(length));
        }
    }
}

/// Reports an entry whose place another one takes, with what was counted there.
// As for `index_of`.
#[inline(never)]
fn report_replaced<F: Table>(hash: u64, place: u32) -> u32 {
    let place = place as usize & (FAST_PLACES - 1);
    let (Some(bucket), Some(traffic)) = (F::bucket(hash), F::traffic(hash)) else { return 0 };
    // SAFETY: the number is below that of the places.
    let (entry, word) = unsafe {
        (bucket.cast::<F::Entry>().add(place), traffic.cast::<u64>().add(place).read_volatile())
    };
    // SAFETY: the pointer is to a value of the map.
    if F::state(unsafe { &*entry }).protocol == 0 {
        return 0;
    }
    let Some(mut record) = maps::FAST_REPLACED.reserve::<FastReplaced>(0) else { return 0 };
    // SAFETY: the record has room for an entry of either family, and is written as a whole before it is submitted.
    unsafe {
        let record = record.as_mut_ptr();
        (&raw mut (*record).word).write(word);
        (&raw mut (*record).place).write(F::number(hash) * FAST_PLACES as u32 + place as u32);
        (&raw mut (*record).ipv6).write(F::IPV6 as u32);
        words::copy(entry.cast_const(), (&raw mut (*record).entry).cast::<F::Entry>());
    }
    record.submit(NO_WAKEUP);
    0
}

/// Nothing waits for the ring (`BPF_RB_NO_WAKEUP`).
const NO_WAKEUP: u64 = 1;

impl Table for V4 {
    #[inline(always)]
    fn workspace() -> Option<*mut Workspace<V4>> {
        WORKSPACE4.get_ptr_mut(0)
    }

    #[inline(always)]
    fn bucket(hash: u64) -> Option<*mut [Self::Entry; FAST_PLACES]> {
        maps::FAST_FLOWS4.get_ptr_mut(hash::index(hash, spec::FastFlows4::CAPACITY))
    }

    #[inline(always)]
    fn tags(hash: u64) -> Option<*mut FastTags> {
        maps::FAST_TAGS4.get_ptr_mut(hash::index(hash, spec::FastTags4::CAPACITY))
    }

    #[inline(always)]
    fn traffic(hash: u64) -> Option<*mut FastTraffic> {
        maps::FAST_TRAFFIC4.get_ptr_mut(Self::number(hash))
    }

    #[inline(always)]
    fn number(hash: u64) -> u32 {
        hash::index(hash, spec::FastFlows4::CAPACITY)
    }
}

impl Table for V6 {
    #[inline(always)]
    fn workspace() -> Option<*mut Workspace<V6>> {
        WORKSPACE6.get_ptr_mut(0)
    }

    #[inline(always)]
    fn bucket(hash: u64) -> Option<*mut [Self::Entry; FAST_PLACES]> {
        maps::FAST_FLOWS6.get_ptr_mut(hash::index(hash, spec::FastFlows6::CAPACITY))
    }

    #[inline(always)]
    fn tags(hash: u64) -> Option<*mut FastTags> {
        maps::FAST_TAGS6.get_ptr_mut(hash::index(hash, spec::FastTags6::CAPACITY))
    }

    #[inline(always)]
    fn traffic(hash: u64) -> Option<*mut FastTraffic> {
        maps::FAST_TRAFFIC6.get_ptr_mut(Self::number(hash))
    }

    #[inline(always)]
    fn number(hash: u64) -> u32 {
        hash::index(hash, spec::FastFlows6::CAPACITY)
    }
}

/// Returns the first place of a bucket that fits.
#[inline(always)]
fn choose(place: &mut u32, hash: u64, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let (place, first) = (&raw mut *place, hash::first_place(hash));
    let mut step = 0;
    while step < FAST_PLACES && !fits((first + step) & (FAST_PLACES - 1)) {
        step += 1;
    }
    // SAFETY: the pointer is from a reference.
    let chosen = unsafe {
        place.write_volatile(step as u32);
        place.read_volatile() as usize
    };
    if chosen < FAST_PLACES { Some((first + chosen) & (FAST_PLACES - 1)) } else { None }
}

/// Reads an entry and its action. Others may write to both meanwhile; the digest tells.
#[inline(always)]
pub fn read_entry<F: Table>(
    entry: *const F::Entry,
    state: &mut FastState,
    action: &mut FastAction,
) -> Option<()> {
    // SAFETY: the pointers are to values of maps.
    unsafe {
        words::copy(F::state(&*entry), state);
        words::copy(maps::FAST_ACTIONS.get_ptr(state.action as u32)?, action);
    }
    Some(())
}

/// Returns the index of an action, which is written unless it is there. [`NO_ACTION`] if there is no free place, or for a
/// pointer that is null.
// The verifier follows it once, because it is a global function.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_action_index(action: *const FastAction, now: *const Validity) -> u32 {
    // SAFETY: what is not null is a reference of the caller.
    let (Some(action), Some(now)) = (unsafe { action.as_ref() }, unsafe { now.as_ref() }) else {
        return NO_ACTION;
    };
    let hash = hash::of_action(action, now.seed);
    let first = hash::index(hash, spec::FastActions::CAPACITY);
    let mut probe = 0;
    while probe < ACTION_PLACES {
        let index = (first + probe) & (spec::FastActions::CAPACITY - 1);
        let Some(have) = maps::FAST_ACTIONS.get_ptr_mut(index) else { return NO_ACTION };
        // SAFETY: the pointer is to a value of the map.
        let have = unsafe { &mut *have };
        if !now.has(have) {
            // SAFETY: both are references.
            unsafe { words::copy(action, have) };
            return index;
        }
        // An action with the same hash that is another one has another digest: its flows stay in the IP stack.
        if hash::of_action(have, now.seed) == hash {
            return index;
        }
        probe += 1;
    }
    NO_ACTION
}

/// No index of an action.
pub const NO_ACTION: u32 = u32::MAX;

//! Per-CPU counters.

use core::hint::black_box;
use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::maps::PerCpuArray;
use gateway_common::wire::{
    BlockKey, CounterLog, CounterPage, CounterValue, LOGGED_PACKETS, LoggedPacket, counter_place,
};

use crate::maps;

#[inline(always)]
pub fn count(counters: &PerCpuArray<CounterValue>, index: u32, length: u32) {
    if let Some(counter) = counters.get_ptr_mut(index) {
        // SAFETY: a per-CPU value is this processor's own while the program runs.
        add(unsafe { &mut *counter }, length);
    }
}

/// Counts a packet for a reason that is a block.
// A function of its own, because the stack is small.
#[inline(never)]
pub fn count_block(device: u32, policy: u32, reason: u32, length: u32) -> u32 {
    let key = BlockKey { device, policy, reason };
    match maps::BLOCK_HITS.get_ptr_mut(&key) {
        // SAFETY: as above.
        Some(counter) => add(unsafe { &mut *counter }, length),
        None => {
            let first = CounterValue { packets: 1, bytes: length as u64 };
            // Fails only while another entry is evicted; that packet is not counted.
            let _ = maps::BLOCK_HITS.insert(&key, &first, 0);
        }
    }
    0
}

/// Empties a full log into the counters. Each run of the program does so before it counts its packet.
// In one place, because the verifier follows the loop at each.
#[inline(always)]
pub fn empty_if_full() {
    if let Some(log) = maps::COUNTER_LOG.get_ptr_mut(0) {
        // SAFETY: as above.
        let log = unsafe { &mut *log };
        if log.count >= LOGGED_PACKETS as u64 {
            empty(log);
        }
    }
}

/// Counts a packet for its policy and its device, 0 for none: in the log.
#[inline(always)]
pub fn count_later(policy: u32, device: u32, length: u32) {
    if policy == 0 && device == 0 {
        return;
    }
    let Some(log) = maps::COUNTER_LOG.get_ptr_mut(0) else { return };
    // SAFETY: as above.
    let log = unsafe { &mut *log };
    let index = log.count as usize;
    if index < LOGGED_PACKETS {
        log.packets[index] = LoggedPacket { policy, device, length, _pad: 0 };
        log.count += 1;
    }
}

/// Moves the packets of the log into the counters.
#[inline(never)]
fn empty(log: &mut CounterLog) -> u32 {
    advance(&mut log.sequence);
    let mut index = 0;
    while index < LOGGED_PACKETS {
        let packet = log.packets[index];
        if !count_in_page(&maps::POLICY_COUNTERS, packet.policy, packet.length)
            || !count_in_page(&maps::DEVICE_COUNTERS, packet.device, packet.length)
        {
            break;
        }
        // A reader may get a part of the next packet; it adds no more than that. In words, because a call of memset
        // would write bytes.
        let words = (&raw mut log.packets[index]).cast::<u64>();
        // SAFETY: a packet is two words, and aligned as the words before it are.
        unsafe {
            words.write_volatile(0);
            words.add(1).write_volatile(0);
        }
        index += 1;
    }
    log.count = 0;
    advance(&mut log.sequence);
    0
}

/// Changes the sequence between what is written before and after, as other processors see it.
#[inline(always)]
fn advance(sequence: &mut u64) {
    // Without a use of the result it is an instruction that does not order other writes on arm64.
    // SAFETY: a reference is valid and aligned; only this processor writes its log.
    black_box(unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(sequence, 1) });
}

/// Counts a packet for a number, also for 0, which means none and is not read. Returns false only if there is no such page,
/// which is not so.
// One branch, because the verifier follows each combination of them in each pass of the loop.
#[inline(always)]
fn count_in_page(counters: &PerCpuArray<CounterPage>, number: u32, length: u32) -> bool {
    let (page, place) = counter_place(number);
    let Some(page) = counters.get_ptr_mut(page) else { return false };
    // SAFETY: as above.
    add(unsafe { &mut (*page).0[place] }, length);
    true
}

#[inline(always)]
pub fn add(counter: &mut CounterValue, length: u32) {
    counter.packets += 1;
    counter.bytes += length as u64;
}

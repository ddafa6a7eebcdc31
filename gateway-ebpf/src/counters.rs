//! Per-CPU counters.

use aya_ebpf::maps::PerCpuArray;
use gateway_common::wire::{CounterPage, CounterValue, counter_place};

#[inline(always)]
pub fn count(counters: &PerCpuArray<CounterValue>, index: u32, length: u32) {
    if let Some(counter) = counters.get_ptr_mut(index) {
        // SAFETY: a per-CPU value is this processor's own while the program runs.
        add(unsafe { &mut *counter }, length);
    }
}

#[inline(always)]
pub fn count_in_page(counters: &PerCpuArray<CounterPage>, number: u32, length: u32) {
    let (page, place) = counter_place(number);
    if let Some(page) = counters.get_ptr_mut(page) {
        // SAFETY: as above.
        add(unsafe { &mut (*page).0[place] }, length);
    }
}

#[inline(always)]
pub fn add(counter: &mut CounterValue, length: u32) {
    counter.packets += 1;
    counter.bytes += length as u64;
}

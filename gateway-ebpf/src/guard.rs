//! Egress of uplinks and tunnels: trusts nothing but the stamp. It does not read the packet, so it
//! works the same on links with and without a link-layer header.

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::programs::TcContext;
use gateway_common::verdict;
use gateway_common::wire::{AuthorisedKey, CounterValue};

use crate::context::{ingress_interface, interface, mark};
use crate::{events, maps};

#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    let index = interface(context);
    let mark = mark(context);
    let authorised = || {
        let key = AuthorisedKey { mark, index };
        // SAFETY: only presence matters.
        unsafe { maps::AUTHORISED.get(&key) }.is_some()
    };
    match verdict::guard(ingress_interface(context), mark, authorised) {
        Ok(()) => TC_ACT_UNSPEC,
        Err(reason) => {
            prevented(index, context.len());
            events::prevented(context, reason);
            TC_ACT_SHOT
        }
    }
}

#[inline(always)]
fn prevented(index: u32, length: u32) {
    if let Some(counter) = maps::PREVENTED.get_ptr_mut(&index) {
        // SAFETY: a per-CPU value is this processor's own while the program runs.
        unsafe {
            (*counter).packets += 1;
            (*counter).bytes += length as u64;
        }
        return;
    }
    let first = CounterValue { packets: 1, bytes: length as u64 };
    let _ = maps::PREVENTED.insert(&index, &first, 0);
}

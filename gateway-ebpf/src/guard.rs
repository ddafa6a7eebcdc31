//! Egress of uplinks and tunnels: trusts nothing but the mark and the source address.

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::maps::PerCpuHashMap;
use aya_ebpf::programs::TcContext;
use gateway_common::guard::{self, Departure};
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::tagged_frame;
use gateway_common::wire::{Address, CounterValue, EgressAllowKey, SLOT_NONE};

use crate::context::{Buffer, ingress_interface, interface, mark};
use crate::network_header::{self, ActivePlan, Field};
use crate::policy_maps::Kernel;
use crate::{events, fast_path_learning, maps, vlan};

#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    let index = interface(context);
    let mark = mark(context);
    let ingress = ingress_interface(context);
    if vlan::leaves_by_own_interface(context) {
        if ingress != 0 {
            set_passed(context);
        }
        return TC_ACT_UNSPEC;
    }
    // Not IP: as `guard` decides it. The verifier does not follow an absent address further than here.
    let (ipv6, Some(source)) = source(context) else {
        return TC_ACT_UNSPEC;
    };
    // SAFETY: values are plain words; one that is being replaced lets a packet be looked at more closely.
    let authorised = unsafe { maps::EGRESS_ALLOW.get(&EgressAllowKey { mark, index }) }.copied();
    // Only what this host sends without a mark is compared with it.
    let leg = match ingress {
        // SAFETY: as above.
        0 => unsafe { maps::EGRESS_LEGS.get(&index) }.copied().unwrap_or(0),
        _ => 0,
    };
    let no_plan = ingress == 0 && Kernel.live() == SLOT_NONE;
    let departure = Departure { ingress, mark, ipv6, source: Some(source), leg, no_plan };
    match guard::guard(&departure, authorised, &ActivePlan) {
        Ok(()) => {
            if ingress != 0 {
                fast_path_learning::learn(context, mark);
                set_passed(context);
            }
            TC_ACT_UNSPEC
        }
        Err(reason) => {
            count(&maps::GUARD_DROPS, index, context.len());
            events::prevented(context, reason);
            TC_ACT_SHOT
        }
    }
}

#[inline(always)]
fn source(context: &TcContext) -> (bool, Option<Address>) {
    if vlan::is_in_frame(context) {
        tagged_frame::source(&Buffer(context))
    } else {
        network_header::address(context, Field::Source)
    }
}

#[inline(always)]
fn set_passed(context: &TcContext) {
    // SAFETY: the context pointer is valid for the run of the program.
    unsafe { (*context.skb.skb).tc_index = u32::from(guard::PASSED) };
}

#[inline(always)]
pub fn count(counters: &PerCpuHashMap<u32, CounterValue>, index: u32, length: u32) {
    if let Some(counter) = counters.get_ptr_mut(&index) {
        // SAFETY: a per-CPU value is this processor's own while the program runs.
        unsafe {
            (*counter).packets += 1;
            (*counter).bytes += length as u64;
        }
        return;
    }
    let first = CounterValue { packets: 1, bytes: length as u64 };
    let _ = counters.insert(&index, &first, 0);
}

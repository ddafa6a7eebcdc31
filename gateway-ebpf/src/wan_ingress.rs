//! Ingress of uplinks and tunnels: before conntrack sees a packet, it has the mark of its leg, by which the kernel's
//! answers to it are routed, or it is gone.

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::programs::TcContext;
use gateway_common::guard;

use crate::context::interface;
use crate::network_header::{self, ActivePlan, Field};
use crate::{counters, fast_path, maps, vlan};

#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    fast_path::clear_index(context);
    if vlan::arrives_by_own_interface(context) {
        return TC_ACT_UNSPEC;
    }
    if let Some(action) = fast_path::forward::<true>(context, &fast_path::validity()) {
        return action;
    }
    let (_, Some(destination)) = network_header::address(context, Field::Destination) else {
        return TC_ACT_UNSPEC;
    };
    // SAFETY: values are plain words.
    let leg = unsafe { maps::EGRESS_LEGS.get(&interface(context)) }.copied().unwrap_or(0);
    match guard::arrive(leg, &destination, &ActivePlan) {
        Ok(Some(mark)) => context.set_mark(mark.0),
        Ok(None) => {}
        Err(reason) => {
            counters::count(&maps::REASON_COUNTERS, reason as u32, context.len());
            return TC_ACT_SHOT;
        }
    }
    TC_ACT_UNSPEC
}

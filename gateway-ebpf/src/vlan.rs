//! VLANs with an interface of their own: the programs of the parent leave their packets alone.

use aya_ebpf::programs::TcContext;
use gateway_common::classify::is_vlan;
use gateway_common::decide::has_own_interface;
use gateway_common::packet::Packet as _;
use gateway_common::tagged_frame::outer_tag;

use crate::context::{Buffer, interface};
use crate::policy_maps::Kernel;

/// Reports whether the IP stack gives a packet that arrives to the interface of its VLAN next.
#[inline(always)]
pub fn arrives_by_own_interface(context: &TcContext) -> bool {
    match Buffer(context).stripped_vlan() {
        Some(tag) => has_own_interface(tag, interface(context), &Kernel),
        None => false,
    }
}

/// Reports whether a packet that leaves comes from the interface of its VLAN.
#[inline(always)]
pub fn leaves_by_own_interface(context: &TcContext) -> bool {
    let tag =
        if is_in_frame(context) { outer_tag(&Buffer(context)) } else { Buffer(context).stripped_vlan() };
    match tag {
        Some(tag) => has_own_interface(tag, interface(context), &Kernel),
        None => false,
    }
}

/// Reports whether the frame has a tag in it.
#[inline(always)]
pub fn is_in_frame(context: &TcContext) -> bool {
    // SAFETY: the context pointer is valid for the run of the program.
    is_vlan(u16::from_be(unsafe { (*context.skb.skb).protocol } as u16))
}

//! Packets of the daemon that enter as if a host had sent them.

use aya_ebpf::bindings::BPF_F_INGRESS;
use aya_ebpf::helpers::bpf_clone_redirect;
use aya_ebpf::programs::TcContext;

use crate::context::interface;

/// Sends a copy of the packet to the ingress of its interface. Returns 0, or a negative error number.
#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    // SAFETY: the context pointer is valid for the run of the program. The packet is not read afterwards.
    unsafe { bpf_clone_redirect(context.skb.skb, interface(context), BPF_F_INGRESS as u64) as i32 }
}

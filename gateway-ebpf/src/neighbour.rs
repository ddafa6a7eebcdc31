//! Neighbour entries of the IP stack, for replies that pass it by.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_fib_lookup;
use aya_ebpf::programs::TcContext;
use gateway_common::wire::{FastPending, Mac};

use crate::context::interface;

/// Looks up the main table only, as replies to the LAN are routed: they match none of the rules (linux/bpf.h).
const DIRECT: u32 = 1;
/// Address families (linux/socket.h).
const INET: u8 = 2;
const INET6: u8 = 10;

/// `struct bpf_fib_lookup` of linux/bpf.h; the bindings have fields in unions.
#[repr(C)]
struct Lookup {
    family: u8,
    protocol: u8,
    source_port: u16,
    destination_port: u16,
    length: u16,
    interface: u32,
    flow: u32,
    source: [u32; 4],
    destination: [u32; 4],
    vlan: u32,
    from: Mac,
    to: Mac,
}
const _: () = assert!(size_of::<Lookup>() == 64);

/// Returns 1 if the IP stack would send replies to the host whose packet was noted: back to its interface, and to its MAC
/// address. It would not if another host has the neighbour entry of the address, or none has it.
// A function of its own, because the stack is small. The verifier requires a numeric return value.
#[inline(never)]
pub fn gets_replies(context: &TcContext, pending: &FastPending) -> u32 {
    let [a, b, c, d] = pending.source.0;
    let ipv6 = pending.ipv6 != 0;
    let mut lookup = Lookup {
        family: if ipv6 { INET6 } else { INET },
        protocol: 0,
        source_port: 0,
        destination_port: 0,
        length: 0,
        interface: interface(context),
        flow: 0,
        source: [0; 4],
        destination: if ipv6 { [a, b, c, d] } else { [d, 0, 0, 0] },
        vlan: 0,
        from: Mac([0; 3]),
        to: Mac([0; 3]),
    };
    let size = size_of::<Lookup>() as i32;
    // SAFETY: the context is valid while the program runs, and the structure is that of the kernel.
    let failed = unsafe { bpf_fib_lookup(context.as_ptr(), (&raw mut lookup).cast(), size, DIRECT) };
    let ([m, n, o], [p, q, r]) = (lookup.to.0, pending.host.0);
    let differs = (m ^ p) | (n ^ q) | (o ^ r);
    let is_there = failed == 0 && lookup.interface == pending.interface && differs == 0;
    is_there as u32
}

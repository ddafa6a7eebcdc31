//! A classifier that lets everything pass, until the programs are here.
#![no_std]
#![no_main]

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;

#[classifier]
pub fn ingress(_context: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

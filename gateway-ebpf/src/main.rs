//! The kernel programs. They carry no decision of their own: `gateway_common::verdict` decides,
//! these programs give it the packet and the maps and carry out what it says.
#![no_std]
#![no_main]
#![allow(internal_features)]
#![feature(core_intrinsics)]

mod client_hello;
mod context;
mod counters;
mod dns_block;
mod dns_filter;
mod dns_query;
mod dns_reply;
mod dns_source;
mod events;
mod fast_path;
mod fast_path_learning;
mod fast_path_table;
mod flow_table;
mod guard;
mod host_tap;
mod ingress;
mod inject;
mod known_verdict;
mod link_frames;
mod maps;
mod neighbour;
mod network_header;
mod policy_maps;
mod quic;
mod tap;
mod vlan;
mod wan_ingress;
mod words;
mod xdp;
mod xdp_block;
mod xdp_dns;
mod xdp_frame;
mod xdp_reply;

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::macros::{classifier, socket_filter, xdp};
use aya_ebpf::programs::{SkBuffContext, TcContext, XdpContext};

/// LAN interfaces, ingress: decides, stamps, drops.
#[classifier]
pub fn gw_ingress(context: TcContext) -> i32 {
    ingress::run(&context)
}

/// LAN interfaces, egress: makes entries of the fast path for packets between networks of the LAN. It passes each packet.
#[classifier]
pub fn gw_lan_egress(context: TcContext) -> i32 {
    fast_path_learning::learn_between_lans(&context);
    TC_ACT_UNSPEC
}

/// LAN interfaces, after [`gw_ingress`] let a question to this host pass: answers it if it was just answered.
#[classifier]
pub fn gw_dns_reply(context: TcContext) -> i32 {
    dns_reply::run(&context).unwrap_or(TC_ACT_UNSPEC)
}

/// LAN interfaces, after [`gw_dns_reply`] found no answer: reads the query, and hashes its name.
#[classifier]
pub fn gw_dns_read(context: TcContext) -> i32 {
    dns_block::read(&context).unwrap_or(TC_ACT_UNSPEC)
}

/// LAN interfaces, after [`gw_dns_read`]: looks the name up in the table of the filter.
#[classifier]
pub fn gw_dns_lookup(context: TcContext) -> i32 {
    dns_block::find(&context).unwrap_or(TC_ACT_UNSPEC)
}

/// LAN interfaces, after [`gw_dns_lookup`] found the name: answers the query as the resolver would.
#[classifier]
pub fn gw_dns_block(context: TcContext) -> i32 {
    dns_block::block(&context).unwrap_or(TC_ACT_UNSPEC)
}

/// Uplinks and tunnels, ingress: marks what came in with its leg, drops what is for an address of another tunnel.
#[classifier]
pub fn gw_wan_ingress(context: TcContext) -> i32 {
    wan_ingress::run(&context)
}

/// Uplinks and tunnels, egress: packets pass only with a mark and a source that this interface allows.
#[classifier]
pub fn gw_guard(context: TcContext) -> i32 {
    guard::run(&context)
}

/// Sockets of the daemon on uplinks and tunnels: counts what left past [`gw_guard`].
#[socket_filter]
pub fn gw_tap(context: SkBuffContext) -> i64 {
    tap::run(&context)
}

/// Sockets of the daemon on LAN interfaces: counts the traffic of hosts.
#[socket_filter]
pub fn gw_host_tap(context: SkBuffContext) -> i64 {
    host_tap::run(&context)
}

/// Attached nowhere: the daemon runs it on packets that then enter by the interface of their context, as if a host had
/// sent them.
#[classifier]
pub fn gw_inject(context: TcContext) -> i32 {
    inject::run(&context)
}

/// LAN interfaces and uplinks with XDP, in the driver: sends packets of established flows on. It passes all others to the
/// programs above.
#[xdp]
pub fn gw_xdp(context: XdpContext) -> u32 {
    xdp::run(&context)
}

/// LAN interfaces with XDP, after [`gw_xdp`] recognised a query of a host whose verdict is known: answers it if it was just
/// answered.
#[xdp]
pub fn gw_xdp_reply(context: XdpContext) -> u32 {
    xdp_reply::run(&context).unwrap_or(XDP_PASS)
}

/// LAN interfaces with XDP, after [`gw_xdp_reply`] found no answer: reads the query, and hashes its name.
#[xdp]
pub fn gw_xdp_read(context: XdpContext) -> u32 {
    xdp_block::read(&context).unwrap_or(XDP_PASS)
}

/// LAN interfaces with XDP, after [`gw_xdp_read`]: looks the name up in the table of the filter.
#[xdp]
pub fn gw_xdp_lookup(context: XdpContext) -> u32 {
    xdp_block::find(&context).unwrap_or(XDP_PASS)
}

/// LAN interfaces with XDP, after [`gw_xdp_lookup`] found the name: answers the query in the driver.
#[xdp]
pub fn gw_xdp_block(context: XdpContext) -> u32 {
    xdp_block::block(&context).unwrap_or(XDP_PASS)
}

/// Interfaces to which [`gw_xdp`] sends packets, behind the redirect: repeats the egress guard.
#[xdp(map = "devmap")]
pub fn gw_xdp_guard(context: XdpContext) -> u32 {
    xdp::guard(&context)
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

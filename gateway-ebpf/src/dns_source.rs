//! Notes of the packets that go to the resolver: with the MAC address that its sockets do not show.

use aya_ebpf::programs::TcContext;
use gateway_common::classify::{IpPacket, TCP, UDP};
use gateway_common::packet::Packet as _;
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::{DnsSource, DnsSourceKey, DnsSourceKind, FLOW_TICK_SHIFT};

use crate::context::Buffer;
use crate::dns_query::HEADER_UDP;
use crate::fast_path::clock;
use crate::{maps, words};

/// Notes a datagram, or a segment that opens a connection, that goes to this host.
#[inline(always)]
pub fn note(context: &TcContext, packet: &IpPacket, verdict: &Verdict) {
    if packet.transport == 0 {
        return;
    }
    let is_datagram = packet.protocol == UDP;
    if !is_datagram && !(packet.protocol == TCP && packet.opening) {
        return;
    }
    let (mut id, mut kind) = (0, DnsSourceKind::Connection);
    if is_datagram {
        // SAFETY: the context pointer is valid for the run of the program.
        let is_merged = unsafe { (*context.skb.skb).gso_size } != 0;
        kind = if is_merged { DnsSourceKind::MergedQueries } else { DnsSourceKind::Query };
        if !is_merged {
            let Some(loaded) = Buffer(context).load::<u16>(packet.transport as usize + HEADER_UDP) else {
                return;
            };
            id = loaded;
        }
    }
    write(packet, kind as u32, id);
    if verdict.reason as u8 == Reason::ForcedDns as u8 {
        write(packet, DnsSourceKind::Redirected as u32, 0);
    }
}

// A function of its own, because the stack is small.
#[inline(never)]
fn write(packet: &IpPacket, kind: u32, id: u16) -> u32 {
    let kind = match kind {
        1 => DnsSourceKind::Query,
        2 => DnsSourceKind::MergedQueries,
        3 => DnsSourceKind::Connection,
        _ => DnsSourceKind::Redirected,
    };
    let port = if matches!(kind, DnsSourceKind::Redirected) { 0 } else { packet.source_port };
    let key = DnsSourceKey { address: packet.source, port, id, kind };
    let Some(place) = maps::DNS_SOURCES.get_ptr_mut(key.index()) else { return 0 };
    let mut before = DnsSource::default();
    let time = (clock() >> FLOW_TICK_SHIFT) as u32;
    // SAFETY: plain words. Another processor may write them meanwhile; a mixture has another check sum.
    unsafe {
        words::copy(place.cast_const(), &raw mut before);
        let note = DnsSource::new(&key, packet.mac, packet.vlan, packet.interface, time, &before);
        words::copy(&raw const note, place);
    }
    0
}

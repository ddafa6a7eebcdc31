//! DNS at XDP: recognises a query in the driver, if the tcx program has just evaluated one of the same host to the same
//! address, and calls the programs that answer: [`xdp_reply`](mod@crate::xdp_reply), then
//! [`xdp_block`](mod@crate::xdp_block). They end with the daemon. Whatever is not plain here goes on to the tcx programs,
//! unchanged.

use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::helpers::generated::bpf_xdp_load_bytes;
use aya_ebpf::programs::XdpContext;
use gateway_common::classify::{DNS_PORT, UDP};
use gateway_common::fast_path::entry::Validity;
use gateway_common::fast_path::header::{ETHERNET, Family, V4, V6, read};
use gateway_common::fast_path::xdp::is_unsummed;
use gateway_common::packet::Packet as _;
use gateway_common::wire::{DnsVerdictKey, MESSAGE_ID, Mac, QUESTION, XdpAnswers, XdpLink};

use crate::dns_query::{self, HEADER_UDP, SHORTEST};
use crate::fast_path::{ETHERTYPE4, ETHERTYPE6};
use crate::fast_path_table::{Table, Workspace};
use crate::xdp_frame::Frame;
use crate::{known_verdict, maps};

/// Offset of the protocol in an IPv4 header, and of the next header in an IPv6 header.
const PROTOCOL4: usize = ETHERNET + 9;
const PROTOCOL6: usize = ETHERNET + 6;

/// Calls the programs that answer, if a frame that no entry of the fast path takes is a query for them. Else passes it.
#[inline(always)]
pub fn run(context: &XdpContext, now: &Validity, link: &XdpLink, ethertype: u16) -> u32 {
    let packet = Frame(context);
    let is_query = match ethertype {
        ETHERTYPE4 if may_be_query(&packet, PROTOCOL4, V4::LENGTH) => read_as::<V4>(context, now, link),
        ETHERTYPE6 if may_be_query(&packet, PROTOCOL6, V6::LENGTH) => read_as::<V6>(context, now, link),
        _ => 0,
    };
    if is_query != 0 {
        // SAFETY: the map holds programs of this kind only. It returns where there is none.
        unsafe { maps::XDP_CALLS.tail_call(context, maps::CALL_REPLY) };
    }
    XDP_PASS
}

#[inline(always)]
fn may_be_query(packet: &Frame<'_>, protocol: usize, headers: usize) -> bool {
    packet.read::<u8>(protocol) == Some(UDP)
        && packet.read::<u16>(ETHERNET + headers + 2) == Some(DNS_PORT.to_be())
}

// A function of its own, because the stack is small. Returns 1 for a query that the programs may answer.
#[inline(never)]
fn read_as<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> u32 {
    read_query::<F>(context, now, link).is_some() as u32
}

/// Reads a query of a host whose verdict is known. The programs that answer find it in their places on this processor.
#[inline(always)]
fn read_query<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> Option<()> {
    // SAFETY: the pointer is to a value of the map, valid while the program runs. A program is not interrupted by itself
    // or by another one that uses the place on one processor.
    let Workspace { head, header, .. } = unsafe { &mut *F::workspace()? };
    let packet = Frame(context);
    let before = packet.length();
    // No option, no extension header, no fragment, and a datagram as long as its packet.
    if !read::<F, _>(&packet, ETHERNET, head, header) || head.source_port == 0 {
        return None;
    }
    let [to, host] = packet.read::<[Mac; 2]>(0)?;
    let known = known_verdict::current()?;
    (known.own, known.answers) = (link.mac, link.answers);
    // Of another host, or a group.
    if to.0[0] != known.own.0[0] || to.0[1] != known.own.0[1] || to.0[2] != known.own.0[2] {
        return None;
    }
    if known.answers == XdpAnswers::None as u16 {
        return None;
    }
    let headers = ETHERNET + F::LENGTH;
    let length = head.length.wrapping_sub((F::LENGTH + HEADER_UDP + MESSAGE_ID) as u32);
    if length < SHORTEST || length > QUESTION as u32 || head.length + ETHERNET as u32 > before {
        return None;
    }
    known.checksum = packet.load::<u16>(headers + 6)?;
    if is_unsummed::<F>(header, head, known.checksum) {
        return None;
    }
    let (source, destination) = F::addresses(header);
    let (client, server) = (F::widen(&source), F::widen(&destination));
    let interface = context.ingress_ifindex() as u32;
    known.key = DnsVerdictKey { client, server, interface, host, _pad: 0 };
    known.find(now)?;
    known.source_port = head.source_port;
    known.ipv6 = F::IPV6;
    known.length = before;
    let asked = dns_query::begin_key(client, server, interface, host, length)?;
    let (at, to) = ((headers + HEADER_UDP + MESSAGE_ID) as u32, asked.question.as_mut_ptr().cast());
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_xdp_load_bytes(context.ctx, at, to, length) } != 0 {
        return None;
    }
    Some(())
}

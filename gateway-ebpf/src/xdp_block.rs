//! DNS filter at XDP: a query for a blocked name is answered in the driver, also the first one, if the tcx program has just
//! evaluated a query of the same host to the same address.

use aya_ebpf::bindings::xdp_action::XDP_DROP;
use aya_ebpf::helpers::generated::{bpf_xdp_load_bytes, bpf_xdp_store_bytes};
use aya_ebpf::programs::XdpContext;
use gateway_common::checksum;
use gateway_common::fast_path::header::{ETHERNET, V4, V6};
use gateway_common::wire::{DnsVerdictKey, FILTER_HEAD, FilterClientKey, MESSAGE_ID};

use crate::dns_filter::{self, Parts};
use crate::dns_query::HEADER_UDP;
use crate::fast_path_table::Table;
use crate::known_verdict::{self, KnownQuery};
use crate::maps::{CALL_BLOCK, CALL_LOOK_UP, XDP_CALLS};
use crate::xdp_reply::{send_back, turn_round, write_checksum, write_headers};

#[inline(always)]
fn client_key(known: &KnownQuery) -> FilterClientKey {
    let DnsVerdictKey { client, server, interface, host, .. } = known.key;
    dns_filter::client_key(client, server, interface, host, known.is_redirected())
}

/// Reads the query that the packet cache does not answer.
#[inline(always)]
pub fn read(context: &XdpContext) -> Option<u32> {
    if !dns_filter::read(&client_key(known_verdict::current()?))? {
        return None;
    }
    // SAFETY: the map holds programs of this kind only. It returns where there is none.
    unsafe { XDP_CALLS.tail_call(context, CALL_LOOK_UP) };
    None
}

/// Looks up the name.
#[inline(always)]
pub fn find(context: &XdpContext) -> Option<u32> {
    dns_filter::find()?;
    // SAFETY: as above.
    unsafe { XDP_CALLS.tail_call(context, CALL_BLOCK) };
    None
}

/// Answers the query.
#[inline(always)]
pub fn block(context: &XdpContext) -> Option<u32> {
    let known = known_verdict::current()?;
    if known.ipv6 { block_as::<V6>(context, known) } else { block_as::<V4>(context, known) }
}

#[inline(always)]
fn block_as<F: Table>(context: &XdpContext, known: &KnownQuery) -> Option<u32> {
    let answer = dns_filter::choose_answer(&client_key(known))?;
    let length = answer.length;
    if !turn_round::<F>(context, known, length) {
        answer.discard();
        return None;
    }
    let parts = answer.log();
    // The query is gone: from here on the frame is the answer, or nothing.
    let written = write_headers::<F>(context, known, length)
        .and_then(|lengths| fill::<F>(context, known, &parts, lengths));
    if written.is_none() {
        return Some(XDP_DROP);
    }
    known.count();
    Some(send_back(known))
}

/// Writes what is around the question, and the checksum.
#[inline(always)]
fn fill<F: Table>(context: &XdpContext, known: &KnownQuery, parts: &Parts, lengths: u32) -> Option<()> {
    let start = (ETHERNET + F::LENGTH + HEADER_UDP + MESSAGE_ID) as u32;
    let head = parts.head.as_ptr().cast_mut().cast();
    // SAFETY: the size is that of the array. The helper checks that the bytes are in the frame.
    if unsafe { bpf_xdp_store_bytes(context.ctx, start, head, FILTER_HEAD as u32) } != 0 {
        return None;
    }
    if let Some((at, length)) = parts.place_of_tail() {
        let tail = parts.tail.as_ptr().cast_mut().cast();
        // SAFETY: as above, or less.
        if unsafe { bpf_xdp_store_bytes(context.ctx, start + at, tail, length) } != 0 {
            return None;
        }
    }
    let change = parts.checksum_change(|to, length| {
        // SAFETY: the place has that length.
        unsafe { bpf_xdp_load_bytes(context.ctx, start, to, length) == 0 }
    })?;
    // The length is in the header and in the pseudo-header.
    write_checksum::<F>(context, known, checksum::add(change, checksum::add(lengths, lengths)))
}

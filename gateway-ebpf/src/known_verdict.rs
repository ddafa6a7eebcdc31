//! Verdicts on DNS queries that the tcx program keeps for the driver, and their use there: XDP evaluates nothing.

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use gateway_common::classify::{DNS_PORT, IpPacket, UDP};
use gateway_common::fast_path::entry::Validity;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{
    DNS_VERDICT_LIFETIME, DnsVerdictKey, DnsVerdictValue, EventRecord, FAST_OFF, Mac, XdpCounter,
};

use crate::counters::{count, count_block, count_later};
use crate::fast_path::clock;
use crate::xdp_frame::link_of;
use crate::{events, maps};

/// Query in the driver, and the verdict on it.
pub struct KnownQuery {
    pub key: DnsVerdictKey,
    pub verdict: DnsVerdictValue,
    /// Source port, in network byte order.
    pub source_port: u16,
    pub ipv6: bool,
    /// Length of the frame.
    pub length: u32,
    /// MAC address of the interface, and the way of the answer: [`XdpAnswers`](gateway_common::wire::XdpAnswers). They are
    /// read once, because the daemon may change them meanwhile.
    pub own: Mac,
    pub answers: u16,
    /// Checksum of the datagram.
    pub checksum: u16,
}

// The programs at XDP call one another, and the stack is small.
#[map(name = "gw_known_query")]
static KNOWN: PerCpuArray<KnownQuery> = PerCpuArray::with_max_entries(1, 0);

/// Returns the query that the programs in the driver answer on this processor.
#[inline(always)]
pub fn current() -> Option<&'static mut KnownQuery> {
    let known = KNOWN.get_ptr_mut(0)?;
    // SAFETY: the pointer is to a value of the map. A program is not interrupted by itself or by another one that uses the
    // value on one processor.
    Some(unsafe { &mut *known })
}

/// Keeps the verdict on a query that goes to the resolver, if it comes by an interface with XDP. `before` is the validity
/// before the evaluation.
#[inline(always)]
pub fn keep(packet: &IpPacket, verdict: &Verdict, before: &Validity) {
    // A verdict with an end is not kept: the driver does not know when a device changes.
    if before.epoch == FAST_OFF || verdict.until != 0 || verdict.admission.is_refused() {
        return;
    }
    if link_of(packet.interface).is_none() {
        return;
    }
    write(packet, verdict, before);
}

// A function of its own, because the stack is small.
#[inline(never)]
fn write(packet: &IpPacket, verdict: &Verdict, before: &Validity) -> u32 {
    let key = DnsVerdictKey {
        client: packet.source,
        server: packet.destination,
        interface: packet.interface,
        host: packet.mac,
        _pad: 0,
    };
    let value = DnsVerdictValue {
        until: clock() + DNS_VERDICT_LIFETIME,
        epoch: before.epoch,
        generation: before.generation,
        policy: verdict.policy,
        device: verdict.device,
        reason: verdict.reason as u32,
        mark: verdict.mark,
    };
    // Without it, the tcx programs answer.
    let _ = maps::DNS_VERDICTS.insert(&key, &value, 0);
    0
}

impl KnownQuery {
    /// Finds the verdict of the key. `None`: the tcx program is to evaluate the query.
    #[inline(always)]
    pub fn find(&mut self, now: &Validity) -> Option<()> {
        // SAFETY: plain words. If the element becomes that of another host during the read, its words are those of a
        // verdict that lets queries through as well.
        self.verdict = unsafe { *maps::DNS_VERDICTS.get_ptr(&self.key)? };
        let DnsVerdictValue { until, epoch, generation, .. } = self.verdict;
        let is_valid = epoch == now.epoch && generation == now.generation && clock() < until;
        if is_valid { Some(()) } else { None }
    }

    #[inline(always)]
    pub fn is_redirected(&self) -> bool {
        self.verdict.reason == Reason::ForcedDns as u32
    }

    /// Counts the query as the tcx program would, and as answered.
    #[inline(always)]
    pub fn count(&self) {
        let DnsVerdictValue { policy, device, reason, .. } = self.verdict;
        count(&maps::REASON_COUNTERS, reason, self.length);
        count_later(policy, device, self.length);
        if self.is_redirected() {
            count_block(device, policy, reason, self.length);
        }
        count(&maps::XDP_COUNTS, XdpCounter::Answered as u32, self.length);
        sample(self);
    }
}

/// Samples a query that the driver answered. Each counts as a flow, because resolvers of hosts change the port with each.
// As for `write`.
#[inline(never)]
fn sample(known: &KnownQuery) -> u32 {
    if !events::is_sampled() {
        return 0;
    }
    events::write(EventRecord {
        time: events::now(),
        source: known.key.client,
        destination: known.key.server,
        interface: known.key.interface,
        mark: known.verdict.mark,
        policy: known.verdict.policy,
        device: known.verdict.device,
        source_port: u16::from_be(known.source_port),
        destination_port: DNS_PORT,
        protocol: UDP,
        reason: known.verdict.reason as u8,
        action: Action::Mark as u8,
        length: known.length,
        ..EventRecord::default()
    });
    0
}

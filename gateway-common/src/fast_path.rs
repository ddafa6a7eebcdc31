//! Fast path of established flows: which flows it takes, how long an entry lives, and the pairing of a packet before
//! translation with the same packet after it.
//!
//! Ingress evaluates a packet, notes it as [`FastPending`](crate::wire::FastPending), and puts the index of the note into
//! the traffic control index of the packet, which the IP stack keeps. Netfilter and routing do their work. The egress
//! guard finds the note, compares it with the packet, and makes two entries, one for each direction.

pub mod entry;
pub mod hash;
pub mod header;
pub mod key;
pub mod xdp;

use core::time::Duration;

use crate::classify::{DNS_PORT, IpPacket, TCP, UDP};
use crate::client_hello;
use crate::verdict::{Action, Reason, Verdict};
use crate::wire::{DEADLINE_SHIFT, FastState, Fragment, Mark, PlanValue, flow_flags, plan_flags};

/// Reason for which a flow stays in the IP stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SlowReason {
    /// Neither TCP nor UDP, or a fragment.
    Protocol = 0,
    /// The packet goes to no uplink, tunnel or other network of the LAN.
    Verdict = 1,
    /// The verdict ends at a certain time.
    Deadline = 2,
    /// A privacy class evaluates each packet of the flow, or the flow log awaits its ClientHello.
    Inspected = 3,
    /// The flow has no record, because its device exceeds its budget of new flows.
    Unrecorded = 4,
    /// DNS, or a protocol whose payload carries addresses.
    Port = 5,
    /// The first packet of a flow.
    New = 6,
}

impl SlowReason {
    /// Returns the name in explanations.
    pub const fn as_str(self) -> &'static str {
        match self {
            SlowReason::Protocol => "protocol",
            SlowReason::Verdict => "verdict",
            SlowReason::Deadline => "deadline",
            SlowReason::Inspected => "inspected",
            SlowReason::Unrecorded => "unrecorded",
            SlowReason::Port => "port",
            SlowReason::New => "new",
        }
    }
}

/// Reports whether the fast path leaves a destination port to the IP stack: DNS, and protocols that conntrack helpers
/// read (nf_conntrack_ftp, _tftp, _netbios_ns, _snmp, _h323, _pptp, _sip, _sane, _irc, _amanda).
#[inline(always)]
pub const fn is_excluded_port(port: u16) -> bool {
    matches!(
        port,
        DNS_PORT | 21 | 69 | 137 | 161 | 162 | 1719 | 1720 | 1723 | 5060 | 5061 | 6566 | 6667 | 10080
    )
}

/// Decides whether a flow with this verdict may get an entry.
#[inline(always)]
pub fn admit(packet: &IpPacket, verdict: &Verdict, plan: &PlanValue) -> Result<(), SlowReason> {
    let is_udp = packet.protocol == UDP;
    if !(is_udp || packet.protocol == TCP) || packet.fragment as u8 != Fragment::Whole as u8 {
        return Err(SlowReason::Protocol);
    }
    let reason = verdict.reason as u8;
    let leaves = reason == Reason::PolicyEgress as u8
        || reason == Reason::PolicyDirect as u8
        || reason == Reason::NoPolicy as u8;
    let has_egress = verdict.mark & !0xff == Mark::PREFIX || verdict.mark == Mark::DIRECT.0;
    let is_local = reason == Reason::ToLan as u8 && verdict.mark == Mark::LOCAL.0;
    if verdict.action as u8 != Action::Mark as u8 || !(leaves && has_egress || is_local) {
        return Err(SlowReason::Verdict);
    }
    if verdict.until != 0 {
        return Err(SlowReason::Deadline);
    }
    // The daemon reads Initial packets of QUIC, wherever they are in a flow.
    if verdict.shown & flow_flags::INSPECTED != 0 || is_udp && plan.flags & plan_flags::SERVER_NAMES != 0 {
        return Err(SlowReason::Inspected);
    }
    if plan.flags & plan_flags::LOGGED_NAMES != 0
        && client_hello::is_awaited(packet, verdict.shown | packet.payload)
    {
        return Err(SlowReason::Inspected);
    }
    if verdict.admission.is_refused() {
        return Err(SlowReason::Unrecorded);
    }
    if is_excluded_port(packet.destination_port) || is_excluded_port(packet.source_port) {
        return Err(SlowReason::Port);
    }
    if verdict.new {
        return Err(SlowReason::New);
    }
    Ok(())
}

/// Converts nanoseconds of the flow clock to the unit of [`FastState`].
#[inline(always)]
pub const fn ticks(nanoseconds: u64) -> u32 {
    (nanoseconds >> DEADLINE_SHIFT) as u32
}

const fn seconds(seconds: u64) -> u32 {
    ticks(seconds * 1_000_000_000)
}

/// Interval at which the IP stack gets a packet of each direction, so that conntrack keeps the flow. Conntrack forgets
/// UDP without replies after 30 seconds.
pub const PROBE_INTERVAL: u32 = seconds(7);
/// Number of ticks by which the interval of some flows is shorter, so that flows that began together do not go on being
/// probed together. A power of two; about a second.
const PROBE_SPREAD: u32 = 16;
/// Interval at which the IP stack gets further packets while the egress guard has not confirmed the flow.
const RETRY_INTERVAL: u32 = seconds(1);
/// Time after which an entry without confirmation is not used.
const LIFETIME: u32 = seconds(10);
/// The same for replies, which end if the host sends nothing.
pub const REPLY_LIFETIME: u32 = seconds(30);

/// Interval at which the daemon renews its lease while it follows the changes that end entries.
pub const RENEWAL: Duration = Duration::from_secs(1);
/// Time after a renewal in which the programs use entries. Without the daemon, all packets take the IP stack then.
pub const LEASE: u32 = seconds(3);

/// Reports whether a lease with this end is in force.
#[inline(always)]
pub const fn is_leased(end: u32, now: u32) -> bool {
    // The clocks of the programs and of the daemon may differ by a tick.
    end.wrapping_sub(now).wrapping_sub(1) <= LEASE
}

/// Use of an entry for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Use {
    /// The packet passes the IP stack by.
    Fast = 0,
    /// The IP stack gets the packet, and the entry stays in use.
    Probe = 1,
    /// The IP stack gets the packet, and the entry is over.
    Over = 2,
}

impl FastState {
    /// Decides on a packet by the age of the entry.
    #[inline(always)]
    pub const fn at(&self, now: u32, is_reply: bool) -> Use {
        let age = now.wrapping_sub(self.confirmed);
        let since_probe = now.wrapping_sub(self.probed);
        let interval = PROBE_INTERVAL - self.digest % PROBE_SPREAD;
        if is_reply {
            if age >= REPLY_LIFETIME {
                Use::Over
            } else if since_probe >= interval {
                Use::Probe
            } else {
                Use::Fast
            }
        } else if age >= LIFETIME {
            Use::Over
        } else if age >= interval && since_probe >= RETRY_INTERVAL {
            Use::Probe
        } else {
            Use::Fast
        }
    }
}

/// Time after which a note about a packet is not used. Packets wait longer only for the MAC address of a neighbour.
pub const PENDING_LIFETIME: u64 = 20_000_000;
/// Time after which an unused note may be overwritten. The difference is much longer than a program runs, so no program
/// reads a note that is being overwritten.
pub const PENDING_REUSE: u64 = 60_000_000;

/// Number of notes of one processor. A power of two.
const PENDING_SHARE: u32 = 1024;
/// Number of processors with notes of their own. Packets of further ones stay slow.
const PENDING_PROCESSORS: u32 = 64;

/// Returns the index of a processor's note. 0, which means no note, if the processor has none or the index means
/// something else.
#[inline(always)]
pub const fn pending_index(processor: u32, counter: u32) -> u32 {
    if processor >= PENDING_PROCESSORS {
        return 0;
    }
    let index = processor * PENDING_SHARE + counter % PENDING_SHARE;
    if index == crate::guard::PASSED as u32 { 0 } else { index }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::admission::Admission;

    fn verdict() -> Verdict {
        let mut verdict = Verdict::DROP;
        verdict.set(Action::Mark, Reason::PolicyEgress, Mark::leg(16).0);
        verdict.new = false;
        verdict
    }

    fn packet() -> IpPacket {
        IpPacket { protocol: TCP, destination_port: 443, source_port: 50_000, ..IpPacket::default() }
    }

    #[test]
    fn each_condition_keeps_a_flow_in_the_stack() {
        let plan = PlanValue::default();
        let (good, flow) = (packet(), verdict());
        assert_eq!(admit(&good, &flow, &plan), Ok(()));
        let direct = Verdict { mark: Mark::DIRECT.0, reason: Reason::NoPolicy, ..flow };
        assert_eq!(admit(&good, &direct, &plan), Ok(()));
        let lan = Verdict { mark: Mark::LOCAL.0, reason: Reason::ToLan, ..flow };
        assert_eq!(admit(&good, &lan, &plan), Ok(()));
        for (packet, reason) in [
            (IpPacket { protocol: 1, ..good }, SlowReason::Protocol),
            (IpPacket { fragment: Fragment::First, ..good }, SlowReason::Protocol),
            (IpPacket { destination_port: 53, ..good }, SlowReason::Port),
            (IpPacket { source_port: 5060, ..good }, SlowReason::Port),
        ] {
            assert_eq!(admit(&packet, &flow, &plan), Err(reason));
        }
        for (verdict, reason) in [
            (Verdict { action: Action::Drop, ..flow }, SlowReason::Verdict),
            (Verdict { reason: Reason::ToGateway, ..flow }, SlowReason::Verdict),
            (Verdict { reason: Reason::PolicyProxy, ..flow }, SlowReason::Verdict),
            (Verdict { mark: Mark::REJECT.0, ..direct }, SlowReason::Verdict),
            (Verdict { mark: Mark::LOCAL.0, ..direct }, SlowReason::Verdict),
            (Verdict { mark: Mark::DIRECT.0, ..lan }, SlowReason::Verdict),
            (Verdict { reason: Reason::LinkLocal, ..lan }, SlowReason::Verdict),
            (Verdict { mark: Mark::RESET.0, ..flow }, SlowReason::Verdict),
            (Verdict { until: 1, ..flow }, SlowReason::Deadline),
            (Verdict { shown: flow_flags::INSPECTED, ..flow }, SlowReason::Inspected),
            (Verdict { admission: Admission::Refused, ..flow }, SlowReason::Unrecorded),
            (Verdict { new: true, ..flow }, SlowReason::New),
        ] {
            assert_eq!(admit(&good, &verdict, &plan), Err(reason));
        }
        let names = PlanValue { flags: plan_flags::SERVER_NAMES, ..plan };
        assert_eq!(admit(&good, &flow, &names), Ok(()));
        let quic = IpPacket { protocol: UDP, ..good };
        assert_eq!(admit(&quic, &flow, &names), Err(SlowReason::Inspected));
        assert_eq!(admit(&quic, &flow, &plan), Ok(()));
    }

    #[test]
    fn flow_log_with_names_sees_each_client_hello() {
        let plan = PlanValue { flags: plan_flags::LOGGED_NAMES, ..PlanValue::default() };
        // Headers of Ethernet, IPv4 and TCP with options.
        let empty = IpPacket { transport: 34, length: 34 + 32, ..packet() };
        let shown = |shown| Verdict { shown, ..verdict() };
        let expect = |packet: &IpPacket, verdict: &Verdict, expected| {
            assert_eq!(admit(packet, verdict, &plan), expected);
        };
        expect(&empty, &shown(0), Err(SlowReason::Inspected));
        expect(&empty, &shown(flow_flags::HELLO), Ok(()));
        let hello = IpPacket { length: 600, payload: flow_flags::HELLO, ..empty };
        expect(&hello, &shown(0), Ok(()));
        let begun = IpPacket { length: 1500, payload: flow_flags::HELLO_OPEN, ..empty };
        expect(&begun, &shown(0), Err(SlowReason::Inspected));
        expect(
            &IpPacket { length: 1500, ..empty },
            &shown(flow_flags::HELLO_OPEN),
            Err(SlowReason::Inspected),
        );
        // Another protocol at the port, other ports, and UDP.
        expect(&IpPacket { length: 95, ..empty }, &shown(0), Ok(()));
        expect(&IpPacket { destination_port: 22, ..empty }, &shown(0), Ok(()));
        expect(&IpPacket { protocol: UDP, ..empty }, &shown(0), Ok(()));
        assert_eq!(admit(&empty, &shown(0), &PlanValue::default()), Ok(()));
    }

    #[test]
    fn intervals_are_as_long_as_their_comments_say() {
        const TICK_MILLISECONDS: u32 = (1 << DEADLINE_SHIFT) / 1_000_000;
        for (interval, seconds) in
            [(RETRY_INTERVAL, 1), (LEASE, 3), (PROBE_INTERVAL, 7), (LIFETIME, 10), (REPLY_LIFETIME, 30)]
        {
            let milliseconds = interval * TICK_MILLISECONDS;
            let error = (seconds * 1000_u32).abs_diff(milliseconds);
            assert!(error <= 2 * TICK_MILLISECONDS + seconds * 10, "{seconds} s are {milliseconds} ms");
        }
    }

    #[test]
    fn an_unconfirmed_flow_is_probed_once_a_second() {
        let confirmed = 1_000;
        let mut state = FastState { confirmed, probed: confirmed, ..FastState::default() };
        let mut probes = Vec::new();
        for now in confirmed..confirmed + LIFETIME {
            if state.at(now, false) == Use::Probe {
                state.probed = now;
                probes.push(now - confirmed);
            }
        }
        assert_eq!(probes.first(), Some(&PROBE_INTERVAL));
        assert!(probes.windows(2).all(|pair| pair[1] - pair[0] == seconds(1)), "{probes:?}");
        assert!(probes.len() >= 3, "{probes:?}");
    }

    #[test]
    fn flows_that_began_together_are_probed_apart() {
        for reply in [false, true] {
            let first = |digest: u32| {
                let state = FastState { digest, confirmed: 0, probed: 0, ..FastState::default() };
                (0..).find(|now| state.at(*now, reply) == Use::Probe).expect("a probe")
            };
            let probes: std::collections::BTreeSet<u32> = (0..64).map(first).collect();
            let want: std::collections::BTreeSet<u32> =
                (0..PROBE_SPREAD).map(|less| PROBE_INTERVAL - less).collect();
            assert_eq!(probes, want, "replies: {reply}");
        }
    }

    #[test]
    fn a_lease_ends_if_it_is_not_renewed() {
        for start in [0, 7, u32::MAX - 1, u32::MAX] {
            let end = start.wrapping_add(LEASE);
            let leased = |after: u32| is_leased(end, start.wrapping_add(after));
            assert!(leased(0) && leased(LEASE - 1));
            assert!(is_leased(end, start.wrapping_sub(1)), "a clock that is a tick behind");
            for after in [LEASE, LEASE + 1, 100 * LEASE, u32::MAX / 2] {
                assert!(!leased(after), "{after} ticks after {start}");
            }
        }
        assert!(!is_leased(0, 1_000_000), "never renewed");
    }

    #[test]
    fn notes_have_distinct_indices_and_none_means_passed() {
        let mut seen = std::collections::BTreeSet::new();
        for processor in 0..PENDING_PROCESSORS {
            for counter in 0..PENDING_SHARE {
                let index = pending_index(processor, counter);
                assert_ne!(index, u32::from(crate::guard::PASSED));
                assert!(index <= u32::from(u16::MAX), "the traffic control index has 16 bits");
                assert!(index == 0 || seen.insert(index));
            }
        }
        assert_eq!(pending_index(PENDING_PROCESSORS, 1), 0);
    }

    proptest! {
        #[test]
        fn an_entry_without_confirmation_ends(confirmed: u32, probed: u32, age in 0..10 * REPLY_LIFETIME, reply: bool) {
            let state = FastState { confirmed, probed, ..FastState::default() };
            let lifetime = if reply { REPLY_LIFETIME } else { LIFETIME };
            let used = state.at(confirmed.wrapping_add(age), reply);
            prop_assert_eq!(used == Use::Over, age >= lifetime);
        }

        #[test]
        fn conntrack_sees_a_packet_in_each_interval(start: u32, digest: u32, reply: bool, gaps in prop::collection::vec(0u32..40, 1..400)) {
            let mut state = if reply {
                FastState { confirmed: start, probed: start.wrapping_sub(PROBE_INTERVAL), digest, ..FastState::default() }
            } else {
                FastState { confirmed: start, probed: start, digest, ..FastState::default() }
            };
            let (mut now, mut last) = (start, if reply { None } else { Some(start) });
            for gap in gaps {
                now = now.wrapping_add(gap);
                match state.at(now, reply) {
                    // The host goes on sending, so the guard confirms both directions.
                    Use::Probe => {
                        state = FastState { confirmed: now, probed: now, ..state };
                        last = Some(now);
                    }
                    Use::Fast => prop_assert!(now.wrapping_sub(last.expect("a first packet")) < PROBE_INTERVAL),
                    Use::Over => prop_assert!(gap > 0),
                }
                if reply {
                    state.confirmed = now;
                }
                if state.at(now, reply) == Use::Over {
                    state.confirmed = now;
                    state.probed = now;
                    last = Some(now);
                }
            }
        }
    }
}

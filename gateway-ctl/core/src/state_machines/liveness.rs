//! Liveness of a tunnel under traffic: data without an answer for longer than a limit proves that the remote end is
//! gone.
//!
//! WireGuard answers data with a keepalive within 10 s if it has nothing else to send (WireGuard paper, section 6.5),
//! so one-way traffic is answered, too. Keepalives themselves get no answer: without data nothing is concluded.
//!
//! The age of a handshake shows a dead remote end only after three minutes. Keepalives are recognised by their size, so
//! the counters of the kernel do. From 5 s before the limit, the gateway sends datagrams with hop limit 1, which the
//! remote end answers and no host behind it sees: one lost keepalive moves no traffic, and a remote end that returns is
//! found. For OpenVPN the pings that the server pushed are the expected answer; without pings nothing is concluded.

use std::time::Duration;

/// Time before the limit at which probes start: one lost answer must not count as a dead remote end.
const PROBE_LEAD: Duration = Duration::from_secs(5);
/// Pause between probes before the limit, and after it.
const PROBE_PAUSE: Duration = Duration::from_secs(1);
const PROBE_PAUSE_SILENT: Duration = Duration::from_secs(3);
/// Longest pause between two observations. After a longer one (suspend, a stopped process) the time starts again.
const MAX_GAP: Duration = Duration::from_secs(5);

/// Counters of a tunnel at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes or packets received from the remote end, authenticated ones only.
    pub received: u64,
    /// Bytes or packets sent to it.
    pub sent: u64,
    /// Keepalives within `sent`; none if `sent` counts data alone.
    pub keepalives: Option<Keepalives>,
}

/// Size of a keepalive and the time between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalives {
    pub size: u64,
    pub interval: Duration,
}

impl Keepalives {
    /// Returns an upper bound of the bytes that keepalives add in a time: periodic ones and one extra.
    fn most(self, elapsed: Duration) -> u64 {
        let periodic = elapsed.as_nanos() / self.interval.as_nanos().max(1);
        self.size.saturating_mul(2 + u64::try_from(periodic).unwrap_or(u64::MAX - 2))
    }
}

/// State of one tunnel, or of one peer of it.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    last: Option<(Traffic, Duration)>,
    /// Time of the first data without an answer.
    unanswered_since: Option<Duration>,
    silent_since: Option<Duration>,
    probed_at: Option<Duration>,
}

impl Liveness {
    /// Takes in the counters at a time.
    pub fn observe(&mut self, traffic: Traffic, limit: Duration, now: Duration) {
        let Some((last, at)) = self.last.replace((traffic, now)) else { return };
        let elapsed = now.saturating_sub(at);
        if traffic.received > last.received {
            (self.unanswered_since, self.silent_since, self.probed_at) = (None, None, None);
            return;
        }
        if traffic.received < last.received || traffic.sent < last.sent {
            // The device was created again and counts from zero, which says nothing about the remote end.
            return;
        }
        if elapsed > MAX_GAP {
            self.unanswered_since = self.unanswered_since.map(|_| now);
        }
        let idle = traffic.keepalives.map_or(0, |keepalives| keepalives.most(elapsed));
        if traffic.sent - last.sent > idle {
            self.unanswered_since.get_or_insert(now);
        }
        if self.silent_since.is_none() && self.unanswered_for(now).is_some_and(|time| time >= limit) {
            self.silent_since = Some(now);
        }
    }

    /// Returns the time since the remote end was found silent. `None` while it answers or is not probed.
    pub fn silent_for(&self, now: Duration) -> Option<Duration> {
        self.silent_since.map(|since| now.saturating_sub(since))
    }

    /// Returns whether data waits for an answer so long that a probe through the tunnel is worth its bytes.
    pub fn is_suspect(&self, limit: Duration, now: Duration) -> bool {
        let lead = limit.saturating_sub(PROBE_LEAD);
        self.silent_since.is_some() || self.unanswered_for(now).is_some_and(|time| time >= lead)
    }

    /// Returns whether a probe is to be sent now, and counts it as sent.
    pub fn take_probe(&mut self, limit: Duration, now: Duration) -> bool {
        let pause = if self.silent_since.is_some() { PROBE_PAUSE_SILENT } else { PROBE_PAUSE };
        let is_due = self.probed_at.is_none_or(|at| now.saturating_sub(at) >= pause);
        let send = is_due && self.is_suspect(limit, now);
        if send {
            self.probed_at = Some(now);
        }
        send
    }

    fn unanswered_for(&self, now: Duration) -> Option<Duration> {
        self.unanswered_since.map(|since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(15);
    const KEEPALIVE: u64 = 32;
    const DATA: u64 = 96;

    /// A WireGuard peer that is observed once a second.
    #[derive(Default)]
    struct Peer {
        liveness: Liveness,
        received: u64,
        sent: u64,
        seconds: u64,
    }

    impl Peer {
        fn step(&mut self, received: u64, sent: u64) -> bool {
            self.seconds += 1;
            (self.received, self.sent) = (self.received + received, self.sent + sent);
            let keepalives = Some(Keepalives { size: KEEPALIVE, interval: Duration::from_secs(5) });
            let traffic = Traffic { received: self.received, sent: self.sent, keepalives };
            self.liveness.observe(traffic, LIMIT, self.now());
            self.liveness.silent_for(self.now()).is_some()
        }

        fn now(&self) -> Duration {
            Duration::from_secs(self.seconds)
        }
    }

    #[test]
    fn data_without_an_answer_proves_a_dead_far_end_at_the_limit() {
        let mut peer = Peer::default();
        peer.step(0, 0);
        assert!(!peer.step(KEEPALIVE, DATA));
        let silent = (0..30).position(|_| peer.step(0, DATA)).expect("silent");
        assert_eq!(silent, 15, "the first unanswered data is in the first step");
        assert!(peer.step(0, 0), "silence of the gateway does not revive the far end");
        assert!(!peer.step(KEEPALIVE, 0), "an answer does");
    }

    #[test]
    fn a_single_datagram_without_an_answer_is_enough() {
        let mut peer = Peer::default();
        peer.step(0, 0);
        peer.step(0, DATA);
        assert!(!(0..14).any(|_| peer.step(0, 0)));
        assert!(peer.step(0, 0));
    }

    #[test]
    fn one_way_traffic_is_answered_by_passive_keepalives() {
        let mut peer = Peer::default();
        for second in 0..600 {
            let received = if second % 11 == 10 { KEEPALIVE } else { 0 };
            assert!(!peer.step(received, DATA), "after {second} s");
        }
    }

    #[test]
    fn an_idle_tunnel_is_never_silent() {
        let mut peer = Peer::default();
        for second in 0..600 {
            let sent = if second % 5 == 0 { KEEPALIVE } else { 0 };
            // The daemon lets the remote end hear from it after a change of the uplink.
            let extra = if second % 31 == 0 { KEEPALIVE } else { 0 };
            assert!(!peer.step(0, sent + extra), "after {second} s");
            assert!(!peer.liveness.is_suspect(LIMIT, peer.now()));
        }
    }

    #[test]
    fn time_during_which_nothing_was_observed_does_not_count() {
        let mut peer = Peer::default();
        peer.step(0, 0);
        peer.step(0, DATA);
        peer.seconds += 3600;
        assert!(!peer.step(0, DATA), "the machine was suspended");
        assert!((0..16).any(|_| peer.step(0, DATA)), "from then on it counts");
    }

    #[test]
    fn counters_that_start_again_neither_accuse_nor_revive() {
        let mut peer = Peer::default();
        peer.step(KEEPALIVE, DATA);
        assert!((0..20).any(|_| peer.step(0, DATA)));
        (peer.received, peer.sent) = (0, 0);
        assert!(peer.step(0, 0), "the device was created again, and no one answered");
        assert!(!peer.step(KEEPALIVE, 0));
    }

    #[test]
    fn probes_start_before_the_limit_and_go_on_until_an_answer() {
        let mut peer = Peer::default();
        peer.step(0, 0);
        let mut sent = Vec::new();
        for _ in 0..25 {
            peer.step(0, DATA);
            if peer.liveness.take_probe(LIMIT, peer.now()) {
                sent.push(peer.seconds - 2);
            }
        }
        assert_eq!(sent, [10, 11, 12, 13, 14, 17, 20, 23]);
        peer.step(KEEPALIVE, 0);
        assert!(!peer.liveness.take_probe(LIMIT, peer.now()));
    }

    proptest! {
        /// A remote end that answers within the limit is never silent, and only data makes one silent.
        #[test]
        fn no_far_end_is_accused_that_answers(
            steps in prop::collection::vec((any::<bool>(), 0u64..14), 1..80), data in any::<bool>(),
        ) {
            let mut peer = Peer::default();
            peer.step(0, 0);
            for (send, pause) in steps {
                for _ in 0..pause {
                    let sent = if send && data { DATA } else { 0 };
                    prop_assert!(!peer.step(0, sent));
                }
                prop_assert!(!peer.step(1, 0));
            }
        }
    }
}

//! Rates of hosts, from observations of the counters of their traffic.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::HostTraffic;
use gateway_model::MacAddr;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

/// Number of observations of a rate. One begins each second.
const MAX_OBSERVATIONS: usize = 5;

/// Host: interface and MAC address.
pub(super) type HostAt = (String, MacAddr);

/// Traffic between a host and this gateway now, which is forwarded or for the gateway itself.
///
/// Mean of the last five seconds. Each frame of the host is counted at the LAN interface, also those of the fast path. While
/// the LAN interfaces carry more than 20 000 packets a second, the gateway counts for a tenth of each second, and the rate is an
/// estimate by this sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostRate {
    /// Bits per second that the host sends.
    pub sent_bps: u64,
    /// Bits per second that it receives.
    pub received_bps: u64,
}

/// Rates of hosts now. Clones are the same rates.
#[derive(Clone, Debug, Default)]
pub struct HostRates(Arc<Mutex<VecDeque<Traffic>>>);

/// Traffic of an observation.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    pub observed: Duration,
    pub hosts: BTreeMap<HostAt, HostTraffic>,
}

impl HostRates {
    /// Returns the rate of a host. `None` if it was not measured in the last observation.
    pub fn of(&self, interface: &str, mac: MacAddr) -> Option<HostRate> {
        let host = (interface.to_owned(), mac);
        let observations = self.0.lock();
        observations.back()?.hosts.get(&host)?;
        let (mut observed, mut sum) = (Duration::ZERO, HostTraffic::default());
        for traffic in observations.iter() {
            if let Some(bytes) = traffic.hosts.get(&host) {
                observed += traffic.observed;
                sum.sent += bytes.sent;
                sum.received += bytes.received;
            }
        }
        Some(HostRate {
            sent_bps: bits_per_second(sum.sent, observed),
            received_bps: bits_per_second(sum.received, observed),
        })
    }

    pub(super) fn note(&self, traffic: Traffic) {
        let mut observations = self.0.lock();
        observations.push_back(traffic);
        while observations.len() > MAX_OBSERVATIONS {
            observations.pop_front();
        }
    }

    /// Forgets all rates: none is known now.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}

fn bits_per_second(bytes: u64, observed: Duration) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / observed.as_nanos().max(1);
    u64::try_from(bits).unwrap_or(u64::MAX)
}

/// Returns the traffic of an observation. Hosts that were not counted at its begin have none.
pub(super) fn between<K: Ord>(
    before: &BTreeMap<K, HostTraffic>,
    after: BTreeMap<K, HostTraffic>,
) -> BTreeMap<K, HostTraffic> {
    let difference = |(host, now): (K, HostTraffic)| {
        let then = before.get(&host)?;
        let traffic = HostTraffic {
            sent: now.sent.saturating_sub(then.sent),
            received: now.received.saturating_sub(then.received),
        };
        Some((host, traffic))
    };
    after.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn host(number: u8) -> HostAt {
        ("lan0".to_owned(), MacAddr([2, 0, 0, 0, 0, number]))
    }

    fn note(rates: &HostRates, observed: Duration, hosts: &[(u8, u64, u64)]) {
        let traffic = |(number, sent, received): &(u8, u64, u64)| {
            (host(*number), HostTraffic { sent: *sent, received: *received })
        };
        rates.note(Traffic { observed, hosts: hosts.iter().map(traffic).collect() });
    }

    fn rate(rates: &HostRates, number: u8) -> Option<(u64, u64)> {
        let (interface, mac) = host(number);
        rates.of(&interface, mac).map(|rate| (rate.sent_bps, rate.received_bps))
    }

    #[test]
    fn rate_is_the_mean_of_the_last_observations_and_of_no_other() {
        let rates = HostRates::default();
        assert_eq!(rate(&rates, 1), None, "before the first");
        note(&rates, SECOND, &[(1, 1_000_000, 0), (2, 0, 0)]);
        assert_eq!((rate(&rates, 1), rate(&rates, 2)), (Some((8_000_000, 0)), Some((0, 0))));
        assert_eq!(rate(&rates, 3), None, "never measured");
        (0..5).for_each(|_| note(&rates, SECOND, &[(1, 0, 250), (2, 0, 0), (3, 125, 0)]));
        assert_eq!((rate(&rates, 1), rate(&rates, 3)), (Some((0, 2000)), Some((1000, 0))));
        note(&rates, SECOND, &[(2, 0, 0)]);
        assert_eq!(rate(&rates, 1), None, "not measured any more");
        rates.clear();
        assert_eq!(rate(&rates, 2), None);
    }

    #[test]
    fn short_observations_count_by_their_length() {
        let rates = HostRates::default();
        note(&rates, SECOND / 10, &[(1, 125_000, 0)]);
        assert_eq!(rate(&rates, 1), Some((10_000_000, 0)));
        note(&rates, SECOND / 10, &[(1, 0, 0)]);
        assert_eq!(rate(&rates, 1), Some((5_000_000, 0)));
    }

    #[test]
    fn host_that_was_not_counted_at_the_begin_has_no_traffic() {
        let traffic = |sent| HostTraffic { sent, received: 1 };
        let before = BTreeMap::from([(1, traffic(10)), (2, traffic(50))]);
        let after = BTreeMap::from([(1, traffic(15)), (2, traffic(7)), (3, traffic(99))]);
        let expected = BTreeMap::from([
            (1, HostTraffic { sent: 5, received: 0 }),
            (2, HostTraffic { sent: 0, received: 0 }),
        ]);
        assert_eq!(between(&before, after), expected);
    }
}

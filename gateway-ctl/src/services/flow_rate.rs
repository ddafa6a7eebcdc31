//! Rate of new flows of each policy, from periodic readings of its round-robin counter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::indexes::PolicyIndex;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handles::in_memory;
use crate::service::{Context, Service};
use crate::supervise::blocking;

const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of readings kept: one minute.
const MAX_SAMPLES: usize = 13;

/// Most recent readings.
#[derive(Clone, Debug, Default)]
pub struct FlowRates(Arc<Mutex<VecDeque<Reading>>>);

#[derive(Debug)]
struct Reading {
    at: Instant,
    counters: BTreeMap<PolicyIndex, u64>,
}

in_memory!(FlowRates);

impl FlowRates {
    /// Returns the new flows per minute over the last minute, by policy index. Empty before there are two readings.
    pub fn per_minute(&self) -> BTreeMap<PolicyIndex, f64> {
        let readings = self.0.lock();
        let Some(last) = readings.back() else { return BTreeMap::new() };
        let rate = |(policy, now): (&PolicyIndex, &u64)| {
            let first = readings.iter().find_map(|reading| Some((reading.at, reading.counters.get(policy)?)));
            let (at, before) = first.filter(|(at, _)| *at < last.at)?;
            let minutes = last.at.duration_since(at).as_secs_f64() / 60.0;
            // The rate is not accurate beyond hundredths.
            let counters = u32::try_from(now.saturating_sub(*before)).unwrap_or(u32::MAX);
            Some((*policy, (f64::from(counters) / minutes * 100.0).round() / 100.0))
        };
        last.counters.iter().filter_map(rate).collect()
    }

    fn note(&self, at: Instant, counters: BTreeMap<PolicyIndex, u64>) {
        let mut readings = self.0.lock();
        readings.push_back(Reading { at, counters });
        while readings.len() > MAX_SAMPLES {
            readings.pop_front();
        }
    }
}

/// Returns the service that reads the counters.
pub fn service(context: &Context) -> Service {
    Service::new("flow_rates", context, run)
}

/// Reads the round-robin counters of the policies that distribute flows.
async fn run(Context { wake, dataplane, handles, .. }: Context) {
    let counters = handles.get::<FlowRates>();
    let compiled = wake.compiled();
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let plan = compiled.borrow().clone();
        let numbers: BTreeSet<PolicyIndex> = plan
            .plan
            .dataplane
            .actions
            .iter()
            .filter(|a| a.v4.all().len().max(a.v6.all().len()) > 1)
            .filter_map(|a| PolicyIndex::new(a.policy))
            .collect();
        let read = {
            let dataplane = dataplane.clone();
            blocking(move || {
                dataplane.with(|programs| {
                    let of = |policy: PolicyIndex| {
                        Some((policy, programs.round_robin_counter(policy.get()).ok()?))
                    };
                    numbers.into_iter().filter_map(of).collect()
                })
            })
        };
        let read = read.await;
        counters.note(Instant::now(), read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(number: u32) -> PolicyIndex {
        PolicyIndex::new(number).expect("a policy")
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let counters = FlowRates::default();
        let start = Instant::now();
        counters.note(start, BTreeMap::from([(index(1), 100)]));
        assert!(counters.per_minute().is_empty(), "one reading is no rate");
        for n in 1..=20u32 {
            counters.note(
                start + SAMPLE_INTERVAL * n,
                BTreeMap::from([(index(1), 100 + 10 * u64::from(n)), (index(2), 7)]),
            );
        }
        assert_eq!(counters.per_minute(), BTreeMap::from([(index(1), 120.0), (index(2), 0.0)]));
    }

    #[test]
    fn a_counter_that_began_again_is_no_rate_beyond_reason() {
        let counters = FlowRates::default();
        let start = Instant::now();
        counters.note(start, BTreeMap::from([(index(1), 100)]));
        counters.note(start + SAMPLE_INTERVAL, BTreeMap::from([(index(1), 3)]));
        assert_eq!(counters.per_minute(), BTreeMap::from([(index(1), 0.0)]));
    }
}

//! Reads the events of the BPF programs, keeps the newest, and warns of packets that the egress guard dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway_common::verdict::Reason;

use crate::os::bpf::Event;
use crate::service::Context;
use crate::supervise::blocking;

const MAX_EVENTS: usize = 512;
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Most recent events, newest last.
#[derive(Clone, Debug, Default)]
pub struct Recent(Arc<Mutex<VecDeque<Event>>>);

impl Recent {
    pub fn list(&self) -> Vec<Event> {
        self.lock().iter().cloned().collect()
    }

    fn add(&self, events: Vec<Event>) {
        let mut kept = self.lock();
        kept.extend(events);
        let surplus = kept.len().saturating_sub(MAX_EVENTS);
        kept.drain(..surplus);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until it is aborted.
pub async fn run(Context { dataplane, .. }: Context, recent: Recent) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let dataplane = dataplane.clone();
        let events = blocking(move || dataplane.with(|programs| programs.drain_events(MAX_EVENTS))).await;
        let prevented = events.iter().filter(|event| event.guard).count();
        if prevented > 0 {
            tracing::warn!(packets = prevented, "egress guard dropped packets");
        }
        for event in events.iter().filter(|event| Reason::is_block_name(event.reason)) {
            let Event { reason, device, policy, protocol, destination_port, .. } = *event;
            tracing::debug!(reason, device, policy, protocol, destination_port, "sampled a blocked packet");
        }
        recent.add(events);
    }
}

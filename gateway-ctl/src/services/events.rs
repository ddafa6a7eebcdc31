//! Reads the events of the BPF programs, keeps the newest, and warns of packets that the egress guard dropped.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::verdict::Reason;
use parking_lot::Mutex;

use crate::handles::in_memory;
use crate::os::bpf::Event;
use crate::service::{Context, Service};
use crate::supervise::blocking;

const MAX_EVENTS: usize = 512;
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Most recent events, newest last.
#[derive(Clone, Debug, Default)]
pub struct Recent(Arc<Mutex<VecDeque<Event>>>);

in_memory!(Recent);

impl Recent {
    pub fn list(&self) -> Vec<Event> {
        self.0.lock().iter().cloned().collect()
    }

    fn add(&self, events: Vec<Event>) {
        let mut kept = self.0.lock();
        kept.extend(events);
        let surplus = kept.len().saturating_sub(MAX_EVENTS);
        kept.drain(..surplus);
    }
}

/// Returns the service that reads the events.
pub fn service(context: &Context) -> Service {
    let (recent, dataplane) = (context.handles.get::<Recent>(), context.dataplane.clone());
    Service::new("dataplane_events", context, run).erases(move |_| {
        let (recent, dataplane) = (recent.clone(), dataplane.clone());
        blocking(move || {
            let erased = dataplane.with(|programs| {
                // Events that were not read yet would come back.
                while !programs.drain_events(MAX_EVENTS).is_empty() {}
                programs.clear_block_hits()
            });
            recent.0.lock().clear();
            erased.map_err(io::Error::other)
        })
    })
}

/// Runs until it is aborted.
async fn run(Context { dataplane, handles, .. }: Context) {
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
        handles.get::<Recent>().add(events);
    }
}

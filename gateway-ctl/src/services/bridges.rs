//! Transport bridges: publication of their states, and one-shot tests with the last result of each. Results are not stored: a test of yesterday's
//! network has no value.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway_core::plan::TransportTarget;
use gateway_model::Id;
use gateway_model::kinds::bridge::BridgeTest;
use parking_lot::Mutex;

use crate::os::transport;
use crate::reconcile::Reason;
use crate::service::{Context, Service};

/// Returns the service that publishes the states of the bridges.
pub fn service(context: &Context) -> Service {
    let transports = context.engines.transports.clone();
    Service::new("bridge_changes", context, run).contributes(move |facts| transports.enrich(facts))
}

/// Runs until it is aborted.
async fn run(Context { engines, worlds, wake, .. }: Context) {
    let mut states = engines.transports.states();
    loop {
        let seen = states.borrow_and_update().clone();
        worlds.report(|reports| reports.transports = seen);
        wake.wake(Reason::Facts);
        if states.changed().await.is_err() {
            return;
        }
    }
}

/// Last test of each bridge since the daemon started.
#[derive(Debug, Default)]
pub struct Tests(Mutex<BTreeMap<Id, BridgeTest>>);

impl Tests {
    pub fn last(&self, bridge: Id) -> Option<BridgeTest> {
        self.0.lock().get(&bridge).cloned()
    }

    /// Stores a test, and drops those of bridges that no longer exist.
    pub fn keep(&self, bridge: Id, test: BridgeTest, exists: impl Fn(Id) -> bool) {
        let mut tests = self.0.lock();
        tests.retain(|id, _| exists(*id));
        tests.insert(bridge, test);
    }
}

/// Step of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: &'static str,
    pub took: Option<Duration>,
    /// Error of the step; `None` if it succeeded.
    pub error: Option<String>,
}

/// Tests whether the remote end of a transport answers.
pub async fn test(target: &TransportTarget) -> Vec<Step> {
    let steps = transport::probe(target).await.into_iter();
    steps
        .map(|(name, outcome)| match outcome {
            Ok(took) => Step { name, took: Some(took), error: None },
            Err(error) => Step { name, took: None, error: Some(error.to_string()) },
        })
        .collect()
}

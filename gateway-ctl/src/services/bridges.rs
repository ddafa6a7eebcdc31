//! One-shot tests of transport bridges, and what came of the last one of each. They are not stored: a test of yesterday's
//! network says nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gateway_core::plan::TransportTarget;
use gateway_model::Id;
use gateway_model::kinds::bridge::BridgeTest;

use crate::os::transport;

/// The last test of each bridge since the daemon started.
#[derive(Debug, Default)]
pub struct Tests(Mutex<BTreeMap<Id, BridgeTest>>);

impl Tests {
    pub fn last(&self, bridge: Id) -> Option<BridgeTest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&bridge).cloned()
    }

    /// Keeps a test; those of bridges that are gone are forgotten.
    pub fn keep(&self, bridge: Id, test: BridgeTest, exists: impl Fn(Id) -> bool) {
        let mut tests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tests.retain(|id, _| exists(*id));
        tests.insert(bridge, test);
    }
}

/// One thing that a test tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub name: &'static str,
    pub took: Option<Duration>,
    /// Why it failed; nothing if it did not.
    pub error: Option<String>,
}

/// Whether the far end of a transport answers.
pub async fn test(target: &TransportTarget) -> Vec<Step> {
    let steps = transport::probe(target).await.into_iter();
    steps
        .map(|(name, outcome)| match outcome {
            Ok(took) => Step { name, took: Some(took), error: None },
            Err(error) => Step { name, took: None, error: Some(error.to_string()) },
        })
        .collect()
}

//! Transport bridges as a backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::plan::TransportTarget;

use crate::os::backend::{ABSENT, Backend};
use crate::os::transport::{Error, Transports as Bridges};

/// Bridges, shared with the readers of their connections.
#[derive(Clone, Debug)]
pub struct Transports(Arc<Bridges>);

impl Transports {
    pub fn new(bridges: Arc<Bridges>) -> Self {
        Self(bridges)
    }
}

impl Backend for Transports {
    type Key = String;
    type Value = TransportTarget;
    type Error = Error;

    const NAME: &'static str = "bridges";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<String, TransportTarget>, Error> {
        Ok(self.0.targets())
    }

    async fn put(
        &self,
        key: &String,
        want: &TransportTarget,
        _have: Option<&TransportTarget>,
    ) -> Result<(), Error> {
        self.0.put(key, want.clone())
    }

    async fn remove(&self, key: &String, _have: &TransportTarget) -> Result<(), Error> {
        self.0.remove(key).await;
        Ok(())
    }

    fn resource(key: &String) -> String {
        format!("bridge of tunnel {key}")
    }

    fn differences(
        expected: Option<&TransportTarget>,
        actual: Option<&TransportTarget>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |target: Option<&TransportTarget>| {
            target.map_or_else(|| ABSENT.to_owned(), |target| format!("at {}", target.near))
        };
        vec![("transport", show(expected), show(actual))]
    }
}

//! Proxies of the relay, as a backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::indexes::ProxyIndex;
use gateway_core::plan::ProxyTarget;

use crate::os::backend::{ABSENT, Backend, PRESENT};
use crate::os::proxy::{Error, Relay};

/// Relay, shared with the readers of its connections.
#[derive(Clone, Debug)]
pub struct Proxies(Arc<Relay>);

impl Proxies {
    pub fn new(relay: Arc<Relay>) -> Self {
        Self(relay)
    }
}

impl Backend for Proxies {
    type Key = ProxyIndex;
    type Value = ProxyTarget;
    type Error = Error;

    const NAME: &'static str = "proxies";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<ProxyIndex, ProxyTarget>, Error> {
        // A relay that does not listen serves none of the wanted targets.
        Ok(if self.0.is_running() { self.0.targets() } else { BTreeMap::new() })
    }

    async fn put(
        &self,
        key: &ProxyIndex,
        want: &ProxyTarget,
        _have: Option<&ProxyTarget>,
    ) -> Result<(), Error> {
        self.0.put(*key, want.clone())
    }

    async fn remove(&self, key: &ProxyIndex, _have: &ProxyTarget) -> Result<(), Error> {
        // The final packets to its clients leave by rules that are removed later.
        self.0.remove(*key).await;
        Ok(())
    }

    fn resource(key: &ProxyIndex) -> String {
        format!("proxy {}", key.get())
    }

    fn differences(
        expected: Option<&ProxyTarget>,
        actual: Option<&ProxyTarget>,
    ) -> Vec<(&'static str, String, String)> {
        // Only this daemon changes the target, and its login must stay secret.
        let show = |target: Option<&ProxyTarget>| target.map_or(ABSENT, |_| PRESENT).to_owned();
        vec![("relay", show(expected), show(actual))]
    }
}

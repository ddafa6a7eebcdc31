//! States of the proxies.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gateway_core::facts::{Facts, ProxyFact};
use gateway_core::indexes::LegId;
use gateway_model::Id;
use gateway_model::kinds::proxy::ProxyLive;

/// States of the proxies at the last poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyStates {
    pub proxies: BTreeMap<Id, ProxyLive>,
    pub(crate) facts: BTreeMap<String, BTreeMap<Option<LegId>, ProxyFact>>,
    pub(crate) addresses: BTreeMap<String, SocketAddr>,
}

impl ProxyStates {
    /// Adds the known state of the proxies to facts.
    pub fn enrich(&self, facts: &mut Facts) {
        facts.proxies.clone_from(&self.facts);
        facts.endpoints.extend(self.addresses.iter().map(|(name, address)| (name.clone(), *address)));
    }
}

//! Selection of records by their properties.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Id;
use gateway_model::id::MacAddr;
use jiff::Timestamp;

use crate::countries::{Countries, CountryCode};

use super::record::{Decision, FlowId, FlowPath, FlowRecord};

/// Conditions on records. All that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    pub flow_id: Option<FlowId>,
    pub client: Option<ClientCondition>,
    pub destination: Option<IpAddr>,
    pub port: Option<u16>,
    pub protocol: Option<u8>,
    /// Name by which the client asked for the destination, or the server name.
    pub domain: Option<DomainCondition>,
    /// Country of the destination.
    pub country: Option<CountryCondition>,
    /// A path by this policy.
    pub policy: Option<Id>,
    /// A path by this egress, by name.
    pub egress: Option<String>,
    /// The last decision.
    pub decision: Option<Decision>,
    /// Reason of the last decision, as a number.
    pub reason: Option<u8>,
    /// At least so many bytes in both directions together.
    pub min_bytes: Option<u64>,
    /// The flow lasted until this time or longer.
    pub since: Option<Timestamp>,
    /// The flow began at this time or later.
    pub begun_since: Option<Timestamp>,
    /// The flow began before this time.
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCondition {
    Address(IpAddr),
    Mac(MacAddr),
    Device(Id),
}

/// Country of the destination, by a database as it is when a record is compared.
#[derive(Clone)]
pub struct CountryCondition {
    pub code: CountryCode,
    pub countries: Arc<dyn Countries + Send + Sync>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainCondition {
    /// A name contains this text, which is in lower case.
    Contains(String),
    /// A name is this one or one below it. In lower case.
    Within(String),
}

impl FlowFilter {
    pub fn is_match(&self, record: &FlowRecord) -> bool {
        let path = record.path();
        let by = |wanted: &dyn Fn(&FlowPath) -> bool| record.paths.iter().any(wanted);
        self.flow_id.is_none_or(|id| record.flow_id == id)
            && self.client.as_ref().is_none_or(|client| client.is_match(record))
            && self.destination.is_none_or(|address| record.destination == address)
            && self.port.is_none_or(|port| record.destination_port == port)
            && self.protocol.is_none_or(|protocol| record.protocol == protocol)
            && self.domain.as_ref().is_none_or(|domain| domain.is_match(record))
            && self.country.as_ref().is_none_or(|country| country.is_match(record))
            && self.policy.is_none_or(|policy| by(&|path| path.policy == Some(policy)))
            && self.egress.as_ref().is_none_or(|name| by(&|path| path.egress.as_ref() == Some(name)))
            && self.decision.is_none_or(|decision| path.is_some_and(|path| path.decision == decision))
            && self.reason.is_none_or(|reason| path.is_some_and(|path| path.reason == reason))
            && self.min_bytes.is_none_or(|least| record.bytes().is_some_and(|bytes| bytes >= least))
            && self.since.is_none_or(|since| record.written_at >= since)
            && self.begun_since.is_none_or(|since| record.flow_id.start() >= since)
            && self.until.is_none_or(|until| record.flow_id.start() < until)
    }
}

impl FlowFilter {
    /// Reports whether there is no condition but on the time.
    pub fn is_of_time_only(&self) -> bool {
        FlowFilter { since: None, until: None, ..self.clone() } == FlowFilter::default()
    }
}

impl CountryCondition {
    fn is_match(&self, record: &FlowRecord) -> bool {
        self.countries.country(record.destination) == Some(self.code)
    }
}

impl fmt::Debug for CountryCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)
    }
}

/// Two conditions are the same if they are about the same country.
impl PartialEq for CountryCondition {
    fn eq(&self, other: &CountryCondition) -> bool {
        self.code == other.code
    }
}

impl Eq for CountryCondition {}

impl ClientCondition {
    fn is_match(&self, record: &FlowRecord) -> bool {
        record.client.as_ref().is_some_and(|client| match self {
            ClientCondition::Address(address) => client.address == *address,
            ClientCondition::Mac(mac) => client.mac == *mac,
            ClientCondition::Device(device) => client.device == Some(*device),
        })
    }
}

impl DomainCondition {
    fn is_match(&self, record: &FlowRecord) -> bool {
        let mut names = record.names.iter().chain(&record.server_name);
        names.any(|name| match self {
            DomainCondition::Contains(text) => name.contains(text.as_str()),
            DomainCondition::Within(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        })
    }
}

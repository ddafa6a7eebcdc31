//! Selection of records by their properties.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_model::Id;
use gateway_model::id::MacAddr;
use jiff::Timestamp;

use crate::countries::{Countries, CountryCode};

use super::record::{Client, Decision, FlowId, FlowPath, FlowRecord, Traffic, bytes_of};

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
        let FlowRecord { destination, destination_port, protocol, names, server_name, .. } = record;
        self.has_id(record.flow_id)
            && self.has_client(record.client.as_ref())
            && self.has_destination(*protocol, *destination_port, *destination)
            && self.has_name(names, server_name.as_deref())
            && (self.policy.is_none() || record.paths.iter().any(|path| self.has_policy(path)))
            && (self.egress.is_none() || record.paths.iter().any(|path| self.has_egress(path)))
            && self.has_decision(record.path())
            && self.has_bytes(record.sent, record.received)
            && self.since.is_none_or(|since| record.written_at >= since)
            && self.has_start(record.flow_id.start())
    }

    pub(super) fn has_id(&self, id: FlowId) -> bool {
        self.flow_id.is_none_or(|wanted| wanted == id)
    }

    pub(super) fn has_client(&self, client: Option<&Client>) -> bool {
        self.client.as_ref().is_none_or(|condition| client.is_some_and(|client| condition.is_match(client)))
    }

    pub(super) fn has_destination(&self, protocol: u8, port: u16, address: IpAddr) -> bool {
        self.destination.is_none_or(|wanted| wanted == address)
            && self.port.is_none_or(|wanted| wanted == port)
            && self.protocol.is_none_or(|wanted| wanted == protocol)
            && self.country.as_ref().is_none_or(|country| country.is_match(address))
    }

    pub(super) fn has_name(&self, names: &[String], server_name: Option<&str>) -> bool {
        self.domain.as_ref().is_none_or(|domain| domain.is_match(names, server_name))
    }

    /// Reports whether a path is by the policy that is wanted.
    pub(super) fn has_policy(&self, path: &FlowPath) -> bool {
        self.policy.is_none_or(|policy| path.policy == Some(policy))
    }

    /// Reports whether a path is by the egress that is wanted.
    pub(super) fn has_egress(&self, path: &FlowPath) -> bool {
        self.egress.as_ref().is_none_or(|name| path.egress.as_ref() == Some(name))
    }

    /// Reports whether the last decision is the one that is wanted.
    pub(super) fn has_decision(&self, last: Option<&FlowPath>) -> bool {
        self.decision.is_none_or(|decision| last.is_some_and(|path| path.decision == decision))
            && self.reason.is_none_or(|reason| last.is_some_and(|path| path.reason == reason))
    }

    pub(super) fn has_bytes(&self, sent: Option<Traffic>, received: Option<Traffic>) -> bool {
        self.min_bytes.is_none_or(|least| bytes_of(sent, received).is_some_and(|bytes| bytes >= least))
    }

    pub(super) fn has_start(&self, start: Timestamp) -> bool {
        self.begun_since.is_none_or(|since| start >= since) && self.until.is_none_or(|until| start < until)
    }
}

impl FlowFilter {
    /// Reports whether there is no condition but on the time.
    pub fn is_of_time_only(&self) -> bool {
        FlowFilter { since: None, until: None, ..self.clone() } == FlowFilter::default()
    }

    /// Returns the device that all records must be of, if there is such a condition.
    pub fn device(&self) -> Option<Id> {
        match self.client {
            Some(ClientCondition::Device(device)) => Some(device),
            Some(ClientCondition::Address(_) | ClientCondition::Mac(_)) | None => None,
        }
    }

    /// Reports whether there is no condition but on the time and the client.
    pub fn is_of_client_only(&self) -> bool {
        FlowFilter { client: None, ..self.clone() }.is_of_time_only()
    }
}

impl CountryCondition {
    fn is_match(&self, destination: IpAddr) -> bool {
        self.countries.country(destination) == Some(self.code)
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
    fn is_match(&self, client: &Client) -> bool {
        match self {
            ClientCondition::Address(address) => client.address == *address,
            ClientCondition::Mac(mac) => client.mac == *mac,
            ClientCondition::Device(device) => client.device == Some(*device),
        }
    }
}

impl DomainCondition {
    fn is_match(&self, names: &[String], server_name: Option<&str>) -> bool {
        let mut names = names.iter().map(String::as_str).chain(server_name);
        names.any(|name| match self {
            DomainCondition::Contains(text) => name.contains(text.as_str()),
            DomainCondition::Within(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        })
    }
}

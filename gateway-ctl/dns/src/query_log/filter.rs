//! Selection of records by their properties.

use std::net::IpAddr;
use std::time::Duration;

use gateway_core::dns::Name;
use gateway_model::Id;
use jiff::Timestamp;

use crate::serve::Status;

/// Conditions on records. All that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub client: Option<ClientFilter>,
    pub domain: Option<DomainFilter>,
    pub status: Option<Status>,
    /// Answered from the cache, or not.
    pub cached: Option<bool>,
    /// Rule, list or feed that decided.
    pub list: Option<Id>,
    pub qtype: Option<u16>,
    /// The name of the upstream contains this text.
    pub upstream: Option<String>,
    /// Display name of the egress.
    pub egress: Option<String>,
    /// The answer took longer.
    pub slower_than: Option<Duration>,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Records that meet one of these are left out. Conditions on the time do not count here.
    pub except: Vec<Filter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFilter {
    Address(IpAddr),
    Device(Id),
    /// [`crate::hooks::Client::number`].
    Number(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainFilter {
    /// The name contains this text, which is in lower case.
    Contains(String),
    /// The name itself or one below it.
    Within(Name),
}

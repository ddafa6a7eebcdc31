//! Leases: addresses that clients have, had, or found in use.

use std::net::Ipv4Addr;

use gateway_model::MacAddr;
use schemars::JsonSchema;
use serde::Serialize;

use super::client_key::ClientKey;
use crate::dns::zones::label;

/// Host names that clients do not get: others look them up to find proxies and routers, or mean themselves by them.
const REFUSED_NAMES: &[&str] = &["isatap", "localhost", "wpad"];

/// Lease of one address. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub mac: MacAddr,
    pub client_id: Option<Box<[u8]>>,
    /// Label that the client sent, or that its reservation gives it.
    pub hostname: Option<Box<str>>,
    pub vendor_class: Option<Box<str>>,
    pub starts: i64,
    /// End of an active lease or of the quarantine of a declined address; of a released one the time of the release.
    pub ends: i64,
    pub state: LeaseState,
}

/// State as stored. An active lease ends by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Active,
    Released,
    /// The address is in use by another host, found by the client or by a probe.
    Declined,
}

/// State at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    Active,
    Expired,
    Declined,
    Released,
}

impl LeaseStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            LeaseStatus::Active => "active",
            LeaseStatus::Expired => "expired",
            LeaseStatus::Declined => "declined",
            LeaseStatus::Released => "released",
        }
    }

    /// Reports whether no client can get the address.
    pub(super) const fn is_in_use(self) -> bool {
        matches!(self, LeaseStatus::Active | LeaseStatus::Declined)
    }
}

impl Lease {
    /// Returns the state at a time. `None`: the quarantine of a declined address is over, and no one has a claim to it.
    pub fn status(&self, now: i64) -> Option<LeaseStatus> {
        match self.state {
            LeaseState::Active if now < self.ends => Some(LeaseStatus::Active),
            LeaseState::Active => Some(LeaseStatus::Expired),
            LeaseState::Released => Some(LeaseStatus::Released),
            LeaseState::Declined if now < self.ends => Some(LeaseStatus::Declined),
            LeaseState::Declined => None,
        }
    }

    pub fn is_active(&self, now: i64) -> bool {
        self.status(now) == Some(LeaseStatus::Active)
    }

    pub(super) fn key(&self) -> ClientKey {
        ClientKey::new(self.mac, self.client_id.as_deref())
    }
}

/// Returns the label of a host name that a client sent: its first part, without letters that no label has.
pub fn host_label(name: &str) -> Option<String> {
    let first = name.trim_end_matches('\0').split('.').next().unwrap_or_default();
    label(first).filter(|label| !REFUSED_NAMES.contains(&label.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_become_labels() {
        let cases = [
            ("Laptop.lan", Some("laptop")),
            ("Anna's TV\0", Some("annas-tv")),
            ("wpad", None),
            ("WPAD.example", None),
            ("", None),
            ("..", None),
            ("日本", None),
        ];
        for (name, expected) in cases {
            assert_eq!(host_label(name).as_deref(), expected, "{name}");
        }
    }
}

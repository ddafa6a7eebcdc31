//! A node of the mesh: what is kept of it, and what holds while it is connected. No I/O.

use std::net::SocketAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::addresses::Addresses;
use crate::keys::{DiscoKey, MachineKey, NodeKey};
use crate::wire::{HostInfo, MapRequest};

/// Routes of a node that are kept.
const MOST_ROUTES: usize = 64;
/// Endpoints of a node that its peers learn.
const MOST_ENDPOINTS: usize = 32;
/// Bytes of a DNS label.
const LONGEST_LABEL: usize = 63;
const LONGEST_OS: usize = 64;

/// Kept part of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub id: u64,
    pub machine: MachineKey,
    pub key: NodeKey,
    /// DNS label of the node, which no other node has.
    pub name: String,
    pub os: String,
    pub addresses: Addresses,
    pub tags: Vec<String>,
    /// True if it is removed once it is gone for a while.
    pub ephemeral: bool,
    pub created: Timestamp,
    /// End of its key; never for a node with tags.
    pub key_expiry: Option<Timestamp>,
    /// Prefixes that it offers to route.
    pub advertised: Vec<IpNet>,
    /// Prefixes that it may route.
    pub approved: Vec<IpNet>,
    /// Time of its last connection.
    pub last_seen: Timestamp,
}

impl Node {
    /// Tells whether the key of the node has ended.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.key_expiry.is_some_and(|expiry| expiry <= now)
    }

    /// Prefixes that the node routes: offered, and approved.
    pub fn routes(&self) -> impl Iterator<Item = IpNet> {
        self.advertised.iter().copied().filter(|route| self.approved.contains(route))
    }

    /// Takes over what the host of the node says about itself. Returns whether anything changed.
    pub fn describe(&mut self, host: &HostInfo) -> bool {
        let mut advertised: Vec<IpNet> = host.routable_ips.iter().map(IpNet::trunc).collect();
        advertised.sort_unstable();
        advertised.dedup();
        advertised.truncate(MOST_ROUTES);
        let os: String = host.os.chars().filter(|letter| !letter.is_control()).take(LONGEST_OS).collect();
        let changed = (&self.os, &self.advertised) != (&os, &advertised);
        (self.os, self.advertised) = (os, advertised);
        changed
    }
}

/// Makes a DNS label of the name of a host.
pub(crate) fn label(name: &str) -> String {
    let mut label = String::new();
    for letter in name.chars().take_while(|letter| *letter != '.') {
        match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => label.push(letter),
            _ if !label.is_empty() && !label.ends_with('-') => label.push('-'),
            _ => {}
        }
        if label.len() == LONGEST_LABEL {
            break;
        }
    }
    let label = label.trim_end_matches('-');
    if label.is_empty() { "node".to_owned() } else { label.to_owned() }
}

/// Makes a label that is not in use, by a number behind it.
pub(crate) fn unused_label(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let label = label(name);
    let numbered = |number: u32| {
        let end = format!("-{number}");
        format!("{}{end}", &label[..label.len().min(LONGEST_LABEL - end.len())])
    };
    let mut candidates = std::iter::once(label.clone()).chain((1..).map(numbered));
    candidates.find(|label| !is_used(label)).unwrap_or(label.clone())
}

/// Live part of a connected node. It ends with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Version of the protocol.
    pub version: u32,
    pub disco_key: DiscoKey,
    pub endpoints: Vec<SocketAddr>,
    /// Region of its relay.
    pub home_derp: u32,
    /// The stream of maps that it reads, if it is connected.
    pub stream: Option<u64>,
}

impl Presence {
    /// Takes over what a request says. Returns whether anything changed.
    pub fn update(&mut self, request: &MapRequest) -> bool {
        let before = self.clone();
        self.version = request.version;
        if !request.disco_key.is_zero() {
            self.disco_key = request.disco_key;
        }
        self.endpoints = request.endpoints.iter().copied().take(MOST_ENDPOINTS).collect();
        if let Some(network) = &request.hostinfo.net_info {
            self.home_derp = network.preferred_derp;
        }
        *self != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_hosts_become_labels() {
        for (name, expected) in [
            ("Anna's iPhone", "anna-s-iphone"),
            ("nas.home.example", "nas"),
            ("-x-", "x"),
            ("日本", "node"),
            ("", "node"),
        ] {
            assert_eq!(label(name), expected);
        }
    }

    #[test]
    fn second_node_of_a_name_has_a_number() {
        let used = ["laptop", "laptop-1"];
        assert_eq!(unused_label("laptop", |label| used.contains(&label)), "laptop-2");
    }

    proptest! {
        #[test]
        fn every_name_has_a_label(name: String, taken in 0..3_u32) {
            let mut used = vec![label(&name)];
            used.extend((1..taken).map(|number| format!("{}-{number}", label(&name))));
            let label = unused_label(&name, |label| used.iter().any(|used| used == label));
            prop_assert!((1..=LONGEST_LABEL).contains(&label.len()) && !used.contains(&label));
            prop_assert!(label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
            prop_assert!(!label.starts_with('-') && !label.ends_with('-'));
        }
    }
}

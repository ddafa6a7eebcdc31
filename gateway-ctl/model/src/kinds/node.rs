//! Nodes: other gateways that this one syncs with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::federation_role::{FederationRole, SyncKind};
use crate::capability::Capability;
use crate::edit::EditError;
use crate::id::{Id, IfName};
use crate::id_or_name::check_reference;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::{KINDS, State};
use crate::upstream::{check_web_address, normalise_web_address};
use crate::validated::{PublicKey, check_name, text_enum};
pub use fingerprint::{fingerprint, fingerprint_words};

text_enum! {
    /// Admission and reachability of a peer.
    #[derive(Default)]
    pub enum NodeStatus {
        /// Not approved.
        #[default]
        Pending = "pending",
        Approved = "approved",
        Connected = "connected",
        Unreachable = "unreachable",
        Rejected = "rejected",
        Revoked = "revoked",
    }
}

text_enum! {
    /// Decision of an administrator about a peer.
    #[derive(Default)]
    pub enum NodeDecision {
        /// Admit it. Its key must be known.
        #[default]
        Approve = "approve",
        /// Refuse it. It may be approved later.
        Reject = "reject",
        /// End the trust in its key for good. Nothing is exchanged any more.
        Revoke = "revoke",
    }
}

text_enum! {
    /// Direction of the exchange of objects.
    #[derive(Default)]
    pub enum SyncPolicy {
        /// From here to the peer.
        Push = "push",
        /// From the peer to here.
        Pull = "pull",
        Both = "both",
        #[default]
        None = "none",
    }
}

/// State of a kind that was last received from a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedKind {
    pub kind: SyncKind,
    /// Revision of the kind at the node.
    pub revision: u64,
    /// SHA-256 of its objects, in hexadecimal.
    pub hash: String,
    /// Version of the node's daemon.
    pub version: String,
    pub received_at: Timestamp,
    /// Objects that were deleted because the node had deleted them, with the revision of that state: the newest 1000.
    #[serde(default)]
    pub tombstones: BTreeMap<Id, u64>,
}

const SCHEMES: &[&str] = &["https", "http"];

/// A peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Node {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    /// URL of the peer's API.
    pub url: String,
    /// Ed25519, base64. Exchanged with the peer, or entered by hand.
    pub public_key: Option<PublicKey>,
    /// Key that the node has replaced. It counts as well until `previous_key_until`.
    #[schemars(extend("readOnly" = true))]
    pub previous_key: Option<PublicKey>,
    #[schemars(extend("readOnly" = true))]
    pub previous_key_until: Option<Timestamp>,
    /// Set by approving it.
    #[schemars(extend("readOnly" = true))]
    pub status: NodeStatus,
    /// Name of a federation role.
    pub role: String,
    pub sync_policy: SyncPolicy,
    /// Kinds that are synced, separated by commas; a kind left out stays local.
    pub sync_resources: String,
    /// Kinds that are taken from the peer, separated by commas.
    pub allowed_receive_resources: String,
    /// Authorities for the certificate of the peer in PEM, instead of those of the system.
    pub ca_certificate: String,
    /// Names of interfaces of this gateway by their names at the peer. Received objects that name another interface are
    /// refused.
    pub interface_map: BTreeMap<String, String>,
    /// Stable id of the peer's installation. Null if it was entered by hand.
    #[schemars(extend("readOnly" = true))]
    pub node_id: Option<String>,
    /// State that was last received, by kind.
    #[schemars(extend("readOnly" = true))]
    pub received: Vec<ReceivedKind>,
}

impl Default for Node {
    fn default() -> Node {
        Node {
            meta: Meta::default(),
            name: String::new(),
            url: String::new(),
            public_key: None,
            previous_key: None,
            previous_key_until: None,
            status: NodeStatus::Pending,
            role: FederationRole::DEFAULT.to_owned(),
            sync_policy: SyncPolicy::None,
            sync_resources: String::new(),
            allowed_receive_resources: String::new(),
            ca_certificate: String::new(),
            interface_map: BTreeMap::new(),
            node_id: None,
            received: Vec::new(),
        }
    }
}

/// State of the exchange with a peer. Null before the first exchange.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct NodeShown {
    /// SHA-256 of the public key, as OpenSSH writes it.
    fingerprint: Option<String>,
    /// The first 96 bits of the same hash as words, to compare by voice: both gateways show the same.
    fingerprint_words: Option<String>,
    last_seen: Option<Timestamp>,
    last_sync: Option<Timestamp>,
    sync_lag_sec: Option<u64>,
    version: Option<String>,
    errors: Vec<String>,
}

impl Resource for Node {
    const NOUN: &'static str = "node";
    const COLLECTION: &'static str = "nodes";
    const READ_ONLY: &'static [&'static str] = &[
        "status",
        "previous_key",
        "previous_key_until",
        "node_id",
        "received",
        "fingerprint",
        "fingerprint_words",
        "last_seen",
        "last_sync",
        "sync_lag_sec",
        "version",
        "errors",
    ];
    const REQUIRED: &'static [&'static str] = &["name", "url"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn prepare(&mut self) {
        normalise_web_address(&mut self.url, SCHEMES);
        for list in [&mut self.sync_resources, &mut self.allowed_receive_resources] {
            *list = kinds(list).collect::<Vec<_>>().join(",");
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        if self.url.is_empty() {
            problems.required("url");
        } else {
            check_web_address("url", &self.url, SCHEMES, problems);
        }
        if self.url.starts_with("http://") {
            problems.warn("url", "Without https others on the way can read what is synced.");
        }
        check_reference::<FederationRole>("role", &Some(self.role.clone()), state, problems);
        check_kinds("sync_resources", &self.sync_resources, problems);
        check_kinds("allowed_receive_resources", &self.allowed_receive_resources, problems);
        if self.sync_policy != SyncPolicy::None && self.sync_resources.is_empty() {
            problems.warn("sync_resources", "No kind is named, so nothing is synced.");
        }
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "ca_certificate", "Expected certificates in PEM.");
        }
        for (theirs, here) in &self.interface_map {
            if here.parse::<IfName>().is_err() || theirs.is_empty() {
                let path = format!("interface_map.{theirs}");
                problems.add(code::FORMAT, path, "Expected the name of an interface.");
            }
        }
        self.check_primaries(state, problems);
        problems.lacks("", Capability::Federation);
    }

    /// The objects that came from it stay, as objects of this gateway.
    fn release(&self, state: &mut State) -> Result<(), EditError> {
        KINDS.iter().for_each(|kind| (kind.ops.adopt)(state, self.meta.id));
        Ok(())
    }

    fn refs(&self) -> Vec<Ref> {
        vec![Ref::new(FederationRole::NOUN, &self.role, "role", Hold::Firm)]
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
        keys.unique("url", format!("url:{}", self.url));
        if let Some(key) = self.public_key {
            keys.unique("public_key", format!("key:{key}"));
        }
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        let key = input.get("public_key").map(|key| key.as_str().and_then(|key| key.parse().ok()));
        // An approval is of one key.
        let is_same_key = key.is_none_or(|key: Option<PublicKey>| key == before.public_key);
        let status = if is_same_key { before.status } else { NodeStatus::Pending };
        input.insert("status".into(), status.as_str().into());
        let kept = |key: Value| if is_same_key { key } else { Value::Null };
        let until = before.previous_key_until.map(|until| until.to_string());
        input.insert("previous_key".into(), kept(before.previous_key.map(|key| key.to_string()).into()));
        input.insert("previous_key_until".into(), kept(until.into()));
        input.insert("node_id".into(), before.node_id.clone().into());
        let received = serde_json::to_value(&before.received).unwrap_or_default();
        input.insert("received".into(), received);
        // The specification changes a node by its three sync fields alone.
        let kept = serde_json::to_value(before).unwrap_or_default();
        for key in ["name", "url", "public_key", "role", "ca_certificate", "interface_map"] {
            input.entry(key).or_insert_with(|| kept[key].clone());
        }
    }

    fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
        shown.insert("fingerprint".into(), self.public_key.map(fingerprint).into());
        shown.insert("fingerprint_words".into(), self.public_key.map(fingerprint_words).into());
        for key in ["last_seen", "last_sync", "sync_lag_sec", "version"] {
            shown.insert(key.to_owned(), Value::Null);
        }
        shown.insert("errors".into(), Value::Array(Vec::new()));
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(NodeShown::json_schema(generator))
    }
}

fn parsed_kinds(list: &str) -> impl Iterator<Item = SyncKind> {
    kinds(list).filter_map(|kind| kind.parse().ok())
}

/// The words of a list, without blanks and empty ones.
fn kinds(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(|kind| kind.trim().replace('-', "_")).filter(|kind| !kind.is_empty())
}

fn check_kinds(path: &str, list: &str, problems: &mut Problems) {
    let names: Vec<String> = kinds(list).collect();
    for (index, name) in names.iter().enumerate() {
        if name.parse::<SyncKind>().is_err() {
            let known = SyncKind::ALL.iter().map(ToString::to_string).collect();
            problems.add(code::ENUM, path, format!("{name:?} is no kind that is synced.")).allowed =
                Some(known);
        } else if name.parse::<SyncKind>().is_ok_and(|kind| kind.collections().is_empty()) {
            problems.warn(path, format!("Objects of {name} are not synced: they stay local."));
        } else if names[..index].contains(name) {
            problems.add(code::DUPLICATE, path, format!("{name} is given twice."));
        }
    }
}

mod fingerprint;
mod rights;
#[cfg(test)]
mod tests;

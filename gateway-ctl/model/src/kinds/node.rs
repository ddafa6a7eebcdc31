//! Nodes: other gateways that this one syncs with.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::federation_role::{FederationRole, Permission, SyncKind};
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

impl Node {
    /// Reports whether an administrator has approved it.
    pub fn is_approved(&self) -> bool {
        self.status == NodeStatus::Approved
    }

    /// Returns the kinds that it may fetch from this gateway.
    pub fn offered_kinds(&self, state: &State) -> Vec<SyncKind> {
        let is_on = self.is_approved() && matches!(self.sync_policy, SyncPolicy::Push | SyncPolicy::Both);
        let named = parsed_kinds(&self.sync_resources).filter(|_| is_on);
        named.filter(|kind| self.permits(state, *kind, |permission| permission.pull)).collect()
    }

    /// Returns the kinds that this gateway fetches from it.
    pub fn received_kinds(&self, state: &State) -> Vec<SyncKind> {
        let accepted = self.accepted_kinds().into_iter().filter(|_| self.is_approved());
        accepted.filter(|kind| self.permits(state, *kind, |permission| permission.push)).collect()
    }

    /// Returns the kinds that the fields of the node accept, whatever its status and role.
    fn accepted_kinds(&self) -> Vec<SyncKind> {
        let is_on = matches!(self.sync_policy, SyncPolicy::Pull | SyncPolicy::Both);
        let allowed: Vec<SyncKind> = parsed_kinds(&self.allowed_receive_resources).collect();
        parsed_kinds(&self.sync_resources).filter(|kind| is_on && allowed.contains(kind)).collect()
    }

    fn permits(&self, state: &State, kind: SyncKind, right: fn(&Permission) -> bool) -> bool {
        let role = state.federation_roles.iter().find(|role| role.name == self.role);
        role.and_then(|role| role.permission(kind)).is_some_and(right)
    }

    /// Returns the state of a kind that was last received.
    pub fn received(&self, kind: SyncKind) -> Option<&ReceivedKind> {
        self.received.iter().find(|received| received.kind == kind)
    }

    /// Two nodes that send the same kind would be two primaries.
    fn check_primaries(&self, state: &State, problems: &mut Problems) {
        let accepted = self.accepted_kinds();
        let is_out = |node: &&Node| matches!(node.status, NodeStatus::Rejected | NodeStatus::Revoked);
        for other in state.nodes.iter().filter(|other| other.meta.id != self.meta.id && !is_out(other)) {
            for kind in other.accepted_kinds().into_iter().filter(|kind| accepted.contains(kind)) {
                let message = format!("{kind} comes from the node {:?} already: a kind has one primary.", other.name);
                problems.add(code::CONFLICT, "sync_resources", message);
            }
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
    const READ_ONLY: &'static [&'static str] =
        &["status", "node_id", "received", "fingerprint", "fingerprint_words", "last_seen", "last_sync", "sync_lag_sec", "version", "errors"];
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
        input.insert("node_id".into(), before.node_id.clone().into());
        let received = serde_json::to_value(&before.received).unwrap_or_default();
        input.insert("received".into(), received);
        // The specification changes a node by its three sync fields alone.
        for (key, kept) in [("name", &before.name), ("url", &before.url)] {
            input.entry(key).or_insert_with(|| kept.as_str().into());
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

/// Returns the SHA-256 of a key, as OpenSSH writes it.
pub fn fingerprint(key: PublicKey) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key.bytes())))
}

/// Returns the first 96 bits of the hash of a key as six words that can be spoken in any language: proquints.
pub fn fingerprint_words(key: PublicKey) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 4] = b"aiou";
    let hash = Sha256::digest(key.bytes());
    let word = |pair: &[u8]| -> String {
        let bits = usize::from(pair[0]) << 8 | usize::from(pair[1]);
        let letters = [
            CONSONANTS[bits >> 12 & 15],
            VOWELS[bits >> 10 & 3],
            CONSONANTS[bits >> 6 & 15],
            VOWELS[bits >> 4 & 3],
            CONSONANTS[bits & 15],
        ];
        letters.map(char::from).iter().collect()
    };
    hash.chunks_exact(2).take(6).map(word).collect::<Vec<_>>().join("-")
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
            problems.warn(path, format!("Objects of {name} stay local: this version does not sync them."));
        } else if names[..index].contains(name) {
            problems.add(code::DUPLICATE, path, format!("{name} is given twice."));
        }
    }
}

#[cfg(test)]
mod tests;

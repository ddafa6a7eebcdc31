//! Nodes: other gateways that this one syncs with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::federation_role::{FederationRole, SyncKind};
use crate::capability::Capability;
use crate::id_or_name::check_reference;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
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
        }
    }
}

/// State of the exchange with a peer. Null before the first exchange.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct NodeShown {
    /// SHA-256 of the public key, as OpenSSH writes it.
    fingerprint: Option<String>,
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
        &["status", "fingerprint", "last_seen", "last_sync", "sync_lag_sec", "version", "errors"];
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
        problems.lacks("", Capability::Federation);
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
        input.insert("status".into(), before.status.as_str().into());
        // The specification changes a node by its three sync fields alone.
        for (key, kept) in [("name", &before.name), ("url", &before.url)] {
            input.entry(key).or_insert_with(|| kept.as_str().into());
        }
    }

    fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
        shown.insert("fingerprint".into(), self.public_key.map(fingerprint).into());
        for key in ["last_seen", "last_sync", "sync_lag_sec", "version"] {
            shown.insert(key.to_owned(), Value::Null);
        }
        shown.insert("errors".into(), Value::Array(Vec::new()));
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(NodeShown::json_schema(generator))
    }
}

fn fingerprint(key: PublicKey) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key.bytes())))
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
        } else if names[..index].contains(name) {
            problems.add(code::DUPLICATE, path, format!("{name} is given twice."));
        }
    }
}

#[cfg(test)]
mod tests;

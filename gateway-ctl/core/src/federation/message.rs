//! Messages between gateways: the exchange of keys, the pull and its answer.
//!
//! An exchange signs its fields. All other messages are the JSON text of a payload in an [`Envelope`] that signs this
//! text, so that no canonical form is needed. The purpose is a part of the signed bytes: a signature for one message is
//! none for another.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::kinds::SyncKind;
use gateway_model::validated::PublicKey;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Newest form of the messages, and the only one that this version reads.
pub const SCHEMA: u32 = 1;
/// Longest name, URL or other text of an exchange, in bytes.
const MAX_TEXT_BYTES: usize = 2048;

/// Purpose of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Proposal,
    Acceptance,
    PullRequest,
    PullReply,
    Manifest,
    Publication,
    Notice,
    Succession,
}

impl Purpose {
    /// All purposes.
    pub const ALL: &[Purpose] = &[
        Purpose::Proposal,
        Purpose::Acceptance,
        Purpose::PullRequest,
        Purpose::PullReply,
        Purpose::Manifest,
        Purpose::Publication,
        Purpose::Notice,
        Purpose::Succession,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Purpose::Proposal => "gateway-federation/1 proposal",
            Purpose::Acceptance => "gateway-federation/1 acceptance",
            Purpose::PullRequest => "gateway-federation/1 pull request",
            Purpose::PullReply => "gateway-federation/1 pull reply",
            Purpose::Manifest => "gateway-federation/1 manifest",
            Purpose::Publication => "gateway-federation/1 publication",
            Purpose::Notice => "gateway-federation/1 notice",
            Purpose::Succession => "gateway-federation/1 succession",
        }
    }
}

/// Returns the bytes that are signed: the purpose and the fields, each with its length before it.
pub fn signed_bytes(purpose: Purpose, fields: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in std::iter::once(&purpose.as_str()).chain(fields) {
        bytes.extend_from_slice(field.len().to_string().as_bytes());
        bytes.push(b':');
        bytes.extend_from_slice(field.as_bytes());
        bytes.push(b',');
    }
    bytes
}

/// Reason why a message is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("it is not a message of the federation: {0}")]
    Form(String),
    #[error("it has the form {0}; this version reads {SCHEMA}")]
    Schema(u32),
    #[error("its field {0} is too long")]
    TooLong(&'static str),
}

/// Ed25519 signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub [u8; 64]);

impl std::fmt::Debug for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signature")
    }
}

impl Signature {
    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub fn parse(text: &str) -> Option<Signature> {
        let bytes = STANDARD.decode(text).ok()?;
        Some(Signature(bytes.try_into().ok()?))
    }
}

/// Declaration that a key replaces another one, with the signatures of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedSuccession {
    /// JSON text of the declaration.
    pub payload: String,
    /// Ed25519 signature of the old key, base64.
    pub by_old: String,
    /// Ed25519 signature of the new key, base64.
    pub by_new: String,
}

/// Signed message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// JSON text of the message.
    pub payload: String,
    /// Ed25519 key of the sender, base64.
    pub public_key: PublicKey,
    /// Ed25519 signature, base64.
    pub signature: String,
    /// Declaration that the sender's key has replaced another one, during the overlap of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succession: Option<SignedSuccession>,
}

impl Envelope {
    /// Reads an envelope. Its signature is not verified.
    pub fn parse(bytes: &[u8]) -> Result<Envelope, MessageError> {
        serde_json::from_slice(bytes).map_err(|error| MessageError::Form(error.to_string()))
    }
}

/// First message of a gateway to a new peer: its key and its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// URL at which the peer reaches the sender.
    #[schemars(length(max = 2048))]
    pub url: String,
    /// Ed25519 key of the sender, base64.
    pub public_key: PublicKey,
    /// Random text, which the acceptance repeats.
    #[schemars(length(min = 16, max = 128))]
    pub nonce: String,
    /// Ed25519 signature of the other fields, base64.
    pub signature: String,
    /// Name of the sender.
    #[schemars(length(max = 2048))]
    pub name: String,
    /// Stable id of the sender's installation.
    #[schemars(length(max = 2048))]
    pub node_id: String,
}

impl Proposal {
    pub fn signed_bytes(&self) -> Vec<u8> {
        let key = self.public_key.to_string();
        signed_bytes(Purpose::Proposal, &[&self.url, &key, &self.nonce, &self.name, &self.node_id])
    }

    /// Checks the lengths of the fields.
    pub fn check(&self) -> Result<(), MessageError> {
        check_lengths(&[("url", &self.url), ("name", &self.name), ("node_id", &self.node_id)])?;
        match self.nonce.len() {
            16..=128 => Ok(()),
            0..16 => Err(MessageError::Form("nonce: expected 16 to 128 characters".to_owned())),
            _ => Err(MessageError::TooLong("nonce")),
        }
    }
}

/// Answer to a [`Proposal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// Ed25519 key of the gateway that answers, base64.
    pub public_key: PublicKey,
    /// Nonce of the proposal.
    pub nonce: String,
    /// Ed25519 signature of the other fields and of the proposal's key, base64.
    pub signature: String,
    /// Name of the gateway.
    pub name: String,
    /// Stable id of its installation.
    pub node_id: String,
}

impl Acceptance {
    pub fn signed_bytes(&self, proposer: PublicKey) -> Vec<u8> {
        let (key, proposer) = (self.public_key.to_string(), proposer.to_string());
        let fields = [&key, &proposer, &self.nonce, &self.name, &self.node_id].map(String::as_str);
        signed_bytes(Purpose::Acceptance, &fields)
    }

    /// Reads an acceptance of a proposal. Its signature is not verified.
    pub fn parse(bytes: &[u8]) -> Result<Acceptance, MessageError> {
        let acceptance: Acceptance =
            serde_json::from_slice(bytes).map_err(|error| MessageError::Form(error.to_string()))?;
        check_lengths(&[
            ("nonce", &acceptance.nonce),
            ("name", &acceptance.name),
            ("node_id", &acceptance.node_id),
        ])?;
        Ok(acceptance)
    }
}

fn check_lengths(fields: &[(&'static str, &str)]) -> Result<(), MessageError> {
    match fields.iter().find(|(_, text)| text.len() > MAX_TEXT_BYTES) {
        Some((name, _)) => Err(MessageError::TooLong(name)),
        None => Ok(()),
    }
}

/// Payload of a request for objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub schema: u32,
    /// Key of the gateway that is asked.
    pub to: PublicKey,
    pub nonce: String,
    pub at: Timestamp,
    /// Hash of each kind that the sender holds, like an ETag; empty for one that it does not hold yet.
    pub have: BTreeMap<String, String>,
}

impl PullRequest {
    pub fn parse(payload: &str) -> Result<PullRequest, MessageError> {
        let request: PullRequest = parse(payload)?;
        check_lengths(&[("nonce", &request.nonce)])?;
        Ok(request)
    }

    /// Returns the known kinds that are asked for, each with the hash that the sender holds. Others are of newer versions.
    pub fn kinds(&self) -> impl Iterator<Item = (SyncKind, &str)> {
        self.have.iter().filter_map(|(kind, hash)| Some((kind.parse().ok()?, hash.as_str())))
    }
}

/// Payload of a notice that kinds have changed, so that a node pulls them now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub schema: u32,
    /// Key of the gateway that is notified.
    pub to: PublicKey,
    pub nonce: String,
    pub at: Timestamp,
    /// Revisions of the kinds that it may fetch.
    pub revisions: BTreeMap<String, u64>,
}

impl Notice {
    pub fn parse(payload: &str) -> Result<Notice, MessageError> {
        let notice: Notice = parse(payload)?;
        check_lengths(&[("nonce", &notice.nonce)])?;
        Ok(notice)
    }
}

/// Payload of the answer to a [`PullRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PullReply {
    pub schema: u32,
    /// Key of the gateway that asked.
    pub to: PublicKey,
    /// Nonce of the request.
    pub nonce: String,
    /// Stable id of the installation that answers.
    pub node_id: String,
    /// Version of its daemon.
    pub version: String,
    /// The kinds that were asked for and may be sent.
    pub kinds: BTreeMap<SyncKind, KindOffer>,
}

impl PullReply {
    pub fn parse(payload: &str) -> Result<PullReply, MessageError> {
        parse(payload)
    }
}

/// State of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindOffer {
    /// Revision of its last change.
    pub revision: u64,
    /// SHA-256 of the objects.
    pub hash: String,
    /// All objects by collection. None if the request names this hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<Map<String, Value>>,
}

/// Reads a payload of the form that this version knows. The form comes first: a newer one may have other fields.
pub(super) fn parse<T: serde::de::DeserializeOwned>(payload: &str) -> Result<T, MessageError> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let form = |error: serde_json::Error| MessageError::Form(error.to_string());
    let Head { schema } = serde_json::from_str(payload).map_err(form)?;
    if schema != SCHEMA {
        return Err(MessageError::Schema(schema));
    }
    serde_json::from_str(payload).map_err(form)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_and_purposes_cannot_be_moved_within_signed_bytes() {
        let of = |fields: &[&str]| signed_bytes(Purpose::Proposal, fields);
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", ""]), of(&["a"]));
        let mut all: Vec<_> = Purpose::ALL.iter().map(|purpose| signed_bytes(*purpose, &["x"])).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), Purpose::ALL.len());
    }

    #[test]
    fn a_newer_form_is_named_and_not_read() {
        assert_eq!(PullReply::parse(r#"{"schema":2,"other":1}"#), Err(MessageError::Schema(2)));
        assert!(matches!(PullRequest::parse(r#"{"schema":1}"#), Err(MessageError::Form(_))));
        assert!(matches!(PullRequest::parse("[]"), Err(MessageError::Form(_))));
    }

    proptest! {
        #[test]
        fn requests_are_read_back_as_they_were(
            nonce in "[a-z0-9]{0,40}",
            have in proptest::collection::btree_map("[a-z_]{1,12}", "[0-9a-f]{0,64}", 0..5),
            key in any::<[u8; 32]>(),
        ) {
            let at = Timestamp::UNIX_EPOCH;
            let request = PullRequest { schema: SCHEMA, to: PublicKey(key), nonce, at, have };
            let text = serde_json::to_string(&request).unwrap();
            prop_assert_eq!(PullRequest::parse(&text), Ok(request));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}|\\{\"schema\":1,\"kinds\":\\{\"dns\":\\{\"revision\":[0-9]{1,3}\\}\\}\\}") {
            let _ = PullRequest::parse(&text);
            let _ = PullReply::parse(&text);
            let _ = Notice::parse(&text);
            let _ = Acceptance::parse(text.as_bytes());
            if let Ok(envelope) = Envelope::parse(text.as_bytes()) {
                prop_assert!(serde_json::to_vec(&envelope).is_ok());
            }
        }

        #[test]
        fn signatures_have_one_text(bytes in any::<[[u8; 32]; 2]>()) {
            let mut signature = Signature([0; 64]);
            signature.0[..32].copy_from_slice(&bytes[0]);
            signature.0[32..].copy_from_slice(&bytes[1]);
            prop_assert_eq!(Signature::parse(&signature.to_text()), Some(signature));
        }
    }
}

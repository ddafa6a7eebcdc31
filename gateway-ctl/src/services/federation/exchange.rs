//! Exchange of keys, from the side of the administrator: a proposal to a peer, and the node that its answer makes.
//!
//! Both gateways store the other as pending. Each administrator compares the words of the fingerprint with those that the
//! other gateway shows, and approves.

use std::sync::Arc;

use gateway_core::federation::message::{Acceptance, Proposal};
use gateway_model::kinds::{FederationRole, Node, fingerprint_words};
use gateway_model::problem::code;
use gateway_model::upstream::{check_web_address, normalise_web_address};
use gateway_model::validated::PublicKey;
use gateway_model::{EditError, Id, Problems, Resource, State};

use super::Federation;
use super::client::PeerError;
use super::events::EventKind;
use super::identity::{Identity, is_signed_by};
use crate::store::{AuditTicket, CommitError, Error};
use crate::supervise::blocking;

/// Path of the exchange at a peer.
pub(super) const EXCHANGE_PATH: &str = "/federation/exchange";

/// Request of an administrator to exchange keys with a peer.
#[derive(Clone, Debug, Default)]
pub struct ExchangeRequest {
    /// URL of the peer's API.
    pub peer: String,
    /// URL at which the peer reaches this gateway.
    pub url: String,
    /// Name of the node here; empty for the one that the peer has.
    pub name: String,
    pub ca_certificate: String,
}

/// Reason why keys were not exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Store(#[from] Error),
    /// The peer was not reached, or gave no answer of use.
    #[error("{0}")]
    Peer(String),
    /// The signature is not of the key.
    #[error("the message is not signed by the key in it")]
    Signature,
    /// The key is refused here.
    #[error("this gateway refuses the key")]
    Refused,
    #[error("{limit} peers wait for an approval already")]
    TooMany { limit: u32 },
}

impl<E: Into<ExchangeError>> From<CommitError<E>> for ExchangeError {
    fn from(error: CommitError<E>) -> Self {
        match error {
            CommitError::Refused { error, .. } => error.into(),
            CommitError::Store(error) => error.into(),
        }
    }
}

/// Identity of a peer, as its messages have it.
pub(super) struct PeerIdentity {
    pub public_key: PublicKey,
    pub node_id: String,
    /// Name of the node, if it is new.
    pub name: String,
    pub ca_certificate: String,
}

impl Federation {
    /// Exchanges keys with a peer. Returns the node, which is pending unless it was known before.
    pub async fn exchange(
        self: &Arc<Self>,
        ticket: AuditTicket,
        request: ExchangeRequest,
    ) -> Result<Id, ExchangeError> {
        let request = checked(request)?;
        let store = self.store.clone();
        let identity = blocking(move || Identity::ensure(&store)).await?;
        let nonce = nonce();
        let mut proposal = Proposal {
            url: request.url.clone(),
            public_key: identity.public_key(),
            nonce: nonce.clone(),
            signature: String::new(),
            name: Self::own_name(),
            node_id: self.node_id(),
        };
        proposal.signature = identity.sign(&proposal.signed_bytes()).to_text();
        let body = serde_json::to_vec(&proposal).map_err(|error| ExchangeError::Peer(error.to_string()))?;
        let ca = request.ca_certificate.as_str();
        let answer = self.client.post(&request.peer, ca, EXCHANGE_PATH, body).await;
        let answer = answer.map_err(|error: PeerError| ExchangeError::Peer(error.to_string()))?;
        let acceptance =
            Acceptance::parse(&answer).map_err(|error| ExchangeError::Peer(error.to_string()))?;
        let key = acceptance.public_key;
        if key == identity.public_key() {
            return Err(ExchangeError::Peer("it has the key of this gateway".to_owned()));
        }
        let signed = acceptance.signed_bytes(identity.public_key());
        if acceptance.nonce != nonce || !is_signed_by(key, &signed, &acceptance.signature) {
            return Err(ExchangeError::Signature);
        }
        let name = if request.name.is_empty() { acceptance.name } else { request.name };
        let (node_id, ca_certificate) = (acceptance.node_id, request.ca_certificate);
        let peer = PeerIdentity { public_key: key, node_id, name, ca_certificate };
        let federation = self.clone();
        blocking(move || federation.store_peer(ticket, &request.peer, peer)).await
    }

    /// Stores a peer with its key. Blocks on the disk.
    pub(super) fn store_peer(
        &self,
        ticket: AuditTicket,
        url: &str,
        peer: PeerIdentity,
    ) -> Result<Id, ExchangeError> {
        let known = self.store.current().nodes.iter().any(|node| node.public_key == Some(peer.public_key));
        let words = fingerprint_words(peer.public_key);
        let id = self.store.commit(ticket, |draft| write_peer(draft, url, peer))?;
        if !known {
            self.note(EventKind::PeerAdded, id, format!("Its key has the fingerprint {words}."));
        }
        Ok(id)
    }
}

/// Returns the request with URLs in their one form.
fn checked(mut request: ExchangeRequest) -> Result<ExchangeRequest, ExchangeError> {
    let mut problems = Problems::new();
    for (path, url) in [("peer", &mut request.peer), ("url", &mut request.url)] {
        normalise_web_address(url, SCHEMES);
        if url.is_empty() {
            problems.required(path);
        } else {
            check_web_address(path, url, SCHEMES, &mut problems);
        }
    }
    if problems.is_empty() { Ok(request) } else { Err(EditError::Invalid(problems).into()) }
}

pub(super) const SCHEMES: &[&str] = &["https", "http"];

/// Writes a node, or the key of one that has none yet.
fn write_peer(draft: &mut State, url: &str, peer: PeerIdentity) -> Result<Id, EditError> {
    let PeerIdentity { public_key, node_id, name, ca_certificate } = peer;
    if let Some(node) = draft.nodes.iter().find(|node| node.public_key == Some(public_key)) {
        return Ok(node.meta.id);
    }
    let same_url = draft.nodes.iter().find(|node| node.url == url).cloned();
    if let Some(node) = same_url {
        if node.public_key.is_some() {
            let message = format!(
                "The node {} has another key: delete it first if its gateway has a new one.",
                node.name
            );
            let mut problems = Problems::new();
            problems.add(code::CONFLICT, "peer", message);
            return Err(EditError::Invalid(problems));
        }
        draft.update::<Node>(node.meta.id, None, |node| {
            (node.public_key, node.node_id) = (Some(public_key), Some(node_id));
        })?;
        return Ok(node.meta.id);
    }
    let node = Node {
        name: free_name(draft, name, public_key),
        url: url.to_owned(),
        public_key: Some(public_key),
        node_id: Some(node_id),
        role: FederationRole::DEFAULT.to_owned(),
        ca_certificate,
        ..Node::default()
    };
    draft.create(node).map(|(node, _)| node.meta.id)
}

/// Returns the name, or one with the first word of the fingerprint if it is taken or is none.
fn free_name(state: &State, name: String, key: PublicKey) -> String {
    let words = fingerprint_words(key);
    let word = words.split('-').next().unwrap_or_default();
    let mut problems = Problems::new();
    gateway_model::validated::check_name("name", &name, &mut problems);
    if !problems.is_empty() {
        return format!("node-{word}");
    }
    let is_taken = state.nodes.iter().any(|node| node.alias() == Some(&name));
    if is_taken { format!("{name}-{word}") } else { name }
}

/// Returns a random text that answers have to repeat.
pub(super) fn nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

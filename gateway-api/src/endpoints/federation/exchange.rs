//! Exchange of keys with a peer, and the decision about it.

use gateway_core::federation::message::{Acceptance, Proposal};
use gateway_ctl::services::federation::{EventKind, ExchangeError, ExchangeRequest};
use gateway_model::kinds::{Node, NodeDecision};
use gateway_model::problem::code;
use gateway_model::{EditError, Id, Kind, Problems, Resource};
use schemars::JsonSchema;
use serde::Deserialize;

use super::observed::observe;
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::request::Req;
use crate::table::collection::{Object, shown};
use crate::table::{Audit, Effect, Live, Table};

const KIND: Kind = Kind::of::<Node>();

pub(super) fn rows(t: &mut Table) {
    let stores = |action| Effect::Stores(Audit { action, resource_type: Node::NOUN });
    t.action("/nodes/exchange", "exchange_node", stores("exchange_node"), exchange)
        .summary("Exchange signing keys with a new peer")
        .doc(
            "Sends the key of this gateway to the peer and stores the peer with its key, as pending. The peer stores \
             this gateway in the same way. Both show fingerprint_words of the other's key: compare them with those of \
             /federation/status there, and approve at both ends. A known key makes no other node.",
        )
        .answers(&[Code::UpstreamFailed])
        .requires_input();
    t.action("/nodes/{id}/approve", "approve_node", stores("approve_node"), approve)
        .summary("Approve, reject or revoke a peer")
        .doc(
            "An approval is of the key that the node has now. A revoked node gets no objects and sends none from then \
             on; those that came from it stay, read-only until the node is deleted.",
        )
        .answers(&[Code::InvalidState]);
    t.action("/federation/exchange", "accept_node", stores("accept_node"), accept)
        .summary("Take the key of another gateway")
        .doc("Gateways call it. It needs no credential and makes no more than a pending node, at most 16 of them.")
        .access(Access::Open)
        .answers(&[Code::Forbidden, Code::LimitReached])
        .requires_input();
}

/// Peer to exchange keys with.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExchangeInput {
    /// URL of the peer's API.
    peer: String,
    /// URL at which the peer reaches this gateway.
    url: String,
    /// Name of the node here. Empty: the name that the peer has.
    #[serde(default)]
    name: String,
    /// Authorities for the certificate of the peer in PEM, instead of those of the system.
    #[serde(default)]
    ca_certificate: String,
}

/// Decision about a peer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DecisionInput {
    decision: NodeDecision,
    /// Words of the peer's fingerprint as its administrator reads them. If given, they must be those of the stored key.
    fingerprint_words: String,
}

async fn exchange(cx: Cx, request: Req<ExchangeInput>) -> Result<Object<Node>, ApiError> {
    let open = cx.open()?;
    let ExchangeInput { peer, url, name, ca_certificate } = request.input;
    let target = peer.clone();
    let request = ExchangeRequest { peer, url, name, ca_certificate };
    let exchanged = open.federation.exchange(cx.own_ticket()?, request).await;
    let id = exchanged.map_err(|error| refused(error, &target))?;
    shown_node(&cx, id)
}

async fn approve(cx: Cx, request: Req<DecisionInput>) -> Result<Object<Node>, ApiError> {
    let DecisionInput { decision, fingerprint_words } = request.input;
    let name = request.params.get("id").to_owned();
    let node = cx
        .commit(move |draft| {
            let id = KIND.find(draft, &name);
            let id = id.ok_or(EditError::NotFound { resource_type: Node::NOUN, id: name })?;
            let mut node = draft.expect::<Node>(id, None)?.as_ref().clone();
            check_words(&node, &fingerprint_words)?;
            node.decide(decision)?;
            draft.replace(id, None, node).map(|(node, _)| node)
        })
        .await?;
    let (kind, message) = match decision {
        NodeDecision::Approve => (EventKind::PeerApproved, "approved"),
        NodeDecision::Reject => (EventKind::PeerRejected, "rejected"),
        NodeDecision::Revoke => (EventKind::PeerRevoked, "revoked"),
    };
    let open = cx.open()?;
    open.federation.note(kind, node.meta.id, format!("{} has {message} it.", cx.actor.name));
    open.federation.wake();
    shown_node(&cx, node.meta.id)
}

/// Checks the words that an administrator has compared.
fn check_words(node: &Node, words: &str) -> Result<(), EditError> {
    let given = words.trim().to_lowercase();
    let known = node.public_key.map(gateway_model::kinds::fingerprint_words);
    if given.is_empty() || known.as_deref() == Some(given.as_str()) {
        return Ok(());
    }
    let mut problems = Problems::new();
    let message = "The key of the node has other words: it may not be the one of this gateway's peer.";
    problems.add(code::CONFLICT, "fingerprint_words", message);
    Err(EditError::Invalid(problems))
}

async fn accept(cx: Cx, request: Req<Proposal>) -> Result<Acceptance, ApiError> {
    let (federation, ticket) = (cx.open()?.federation.clone(), cx.own_ticket()?);
    let accepted = blocking(move || federation.accept(ticket, request.input)).await?;
    accepted.map_err(|error| refused(error, ""))
}

fn refused(error: ExchangeError, target: &str) -> ApiError {
    let message = format!("No keys were exchanged: {error}.");
    match error {
        ExchangeError::Edit(error) => error.into(),
        ExchangeError::Store(error) => error.into(),
        ExchangeError::Peer(_) => ApiError::new(Code::UpstreamFailed, message).detail("target", target),
        ExchangeError::Signature | ExchangeError::Refused => ApiError::new(Code::Forbidden, message),
        ExchangeError::TooMany { limit } => ApiError::new(Code::LimitReached, message)
            .detail("limit", limit)
            .detail("resource_type", Node::NOUN),
    }
}

fn shown_node(cx: &Cx, id: Id) -> Result<Object<Node>, ApiError> {
    let open = cx.open()?;
    let state = open.store.current();
    let (value, revision) = KIND.get(&state, &id.to_string())?;
    Ok(Object::new(shown(open, &state, Some(Live::within(observe)), value, revision)))
}

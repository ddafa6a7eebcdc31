//! Answers to the pulls of other gateways.
//!
//! The node is the one that an administrator has approved with the key of the request. It gets the kinds that its role
//! and its fields permit, and no others; each request is checked again, so that a revocation counts at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::federation::message::{
    Envelope, MessageError, PullReply, PullRequest, Purpose, SCHEMA, signed_bytes,
};
use gateway_core::federation::offer::offer;
use gateway_core::federation::rotation::TrustedKeys;
use gateway_model::kinds::{Node, SyncKind};
use gateway_model::validated::PublicKey;
use jiff::{SignedDuration, Timestamp};

use super::identity::{Identity, is_signed_by};
use super::{Federation, VERSION};

/// Maximum difference between the clocks of two gateways.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(300);

/// Reason why a message of another gateway has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// Says no more, because any host may ask.
    #[error("the message is not signed by the key of an approved node")]
    Signature,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("the request is for another gateway")]
    Addressee,
    #[error("the clocks of the gateways differ by more than {} s", MAX_SKEW.as_secs())]
    Clock,
    #[error("the request was answered before")]
    Repeated,
    #[error("the key of this gateway cannot be read")]
    NoKey,
}

impl Federation {
    /// Answers a request of a node. May open the secret of the key.
    pub fn serve(&self, request: &Envelope) -> Result<Envelope, ServeError> {
        let (node, identity) = self.sender(request, Purpose::PullRequest)?;
        let body = PullRequest::parse(&request.payload)?;
        self.check_fresh(&node, &identity, body.to, body.at, &body.nonce)?;
        let (state, key) = (self.store.current(), request.public_key);
        self.peers
            .note_held(node.meta.id, body.kinds().map(|(kind, hash)| (kind, hash.to_owned())).collect());
        let offered = node.offered_kinds(&state);
        let asked = body.kinds().filter(|(kind, _)| offered.contains(kind));
        let kinds: BTreeMap<SyncKind, _> =
            asked.map(|(kind, hash)| (kind, offer(&state, kind, hash))).collect();
        let reply = PullReply {
            schema: SCHEMA,
            to: key,
            nonce: body.nonce.clone(),
            node_id: self.node_id(),
            version: VERSION.to_owned(),
            kinds,
        };
        Ok(signed(&identity, Purpose::PullReply, &reply))
    }

    /// Returns the approved node whose key has signed a message, and the identity of this gateway.
    pub(super) fn sender(
        &self,
        request: &Envelope,
        purpose: Purpose,
    ) -> Result<(Arc<Node>, Identity), ServeError> {
        if let Some(succession) = &request.succession {
            self.follow_succession(succession);
        }
        let (state, now) = (self.store.current(), self.store.clock().now());
        let key = request.public_key;
        let accepts = |node: &Node| TrustedKeys::of(node).is_some_and(|keys| keys.accepts(key, now));
        let node = state.nodes.arcs().find(|node| node.is_approved() && accepts(node));
        let bytes = signed_bytes(purpose, &[&request.payload]);
        let node = node.filter(|_| is_signed_by(key, &bytes, &request.signature)).cloned();
        let node = node.ok_or(ServeError::Signature)?;
        Ok((node, Identity::of(&state).ok_or(ServeError::NoKey)?))
    }

    /// Checks that a message of a node is for this gateway, of now, and the first one with its nonce.
    pub(super) fn check_fresh(
        &self,
        node: &Node,
        identity: &Identity,
        to: PublicKey,
        at: Timestamp,
        nonce: &str,
    ) -> Result<(), ServeError> {
        let now = self.store.clock().now();
        if !identity.is_own(to, now) {
            return Err(ServeError::Addressee);
        }
        if now.duration_since(at).abs() > MAX_SKEW {
            return Err(ServeError::Clock);
        }
        if !self.peers.take_nonce(node.meta.id, nonce) {
            return Err(ServeError::Repeated);
        }
        self.peers.update(node.meta.id, |peer| peer.last_seen = Some(now));
        Ok(())
    }
}

/// Returns a message in an envelope with its signature.
pub(super) fn signed(identity: &Identity, purpose: Purpose, message: &impl serde::Serialize) -> Envelope {
    let payload = serde_json::to_string(message).expect("messages have string keys");
    let signature = identity.sign(&signed_bytes(purpose, &[&payload])).to_text();
    Envelope { payload, public_key: identity.public_key(), signature, succession: identity.succession() }
}

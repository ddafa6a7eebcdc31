//! Answers to the pulls of other gateways.
//!
//! The node is the one that an administrator has approved with the key of the request. It gets the kinds that its role
//! and its fields permit, and no others; each request is checked again, so that a revocation counts at once.

use std::collections::BTreeMap;

use gateway_core::federation::message::{
    Envelope, MessageError, PullReply, PullRequest, Purpose, SCHEMA, signed_bytes,
};
use gateway_core::federation::offer::offer;
use gateway_model::kinds::SyncKind;
use jiff::SignedDuration;

use super::identity::{Identity, is_signed_by};
use super::{Federation, VERSION};

/// Maximum difference between the clocks of two gateways.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(300);

/// Reason why a request for objects has no answer.
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
        let state = self.store.current();
        let key = request.public_key;
        let node = state.nodes.iter().find(|node| node.public_key == Some(key) && node.is_approved());
        let bytes = signed_bytes(Purpose::PullRequest, &[&request.payload]);
        let node =
            node.filter(|_| is_signed_by(key, &bytes, &request.signature)).ok_or(ServeError::Signature)?;
        let identity = Identity::of(&state).ok_or(ServeError::NoKey)?;
        let body = PullRequest::parse(&request.payload)?;
        if body.to != identity.public_key() {
            return Err(ServeError::Addressee);
        }
        let now = self.store.clock().now();
        if now.duration_since(body.at).abs() > MAX_SKEW {
            return Err(ServeError::Clock);
        }
        if !self.peers.take_nonce(node.meta.id, &body.nonce) {
            return Err(ServeError::Repeated);
        }
        self.peers.update(node.meta.id, |peer| peer.last_seen = Some(now));
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
}

/// Returns a message in an envelope with its signature.
pub(super) fn signed(identity: &Identity, purpose: Purpose, message: &impl serde::Serialize) -> Envelope {
    let payload = serde_json::to_string(message).expect("messages have string keys");
    let signature = identity.sign(&signed_bytes(purpose, &[&payload])).to_text();
    Envelope { payload, public_key: identity.public_key(), signature }
}

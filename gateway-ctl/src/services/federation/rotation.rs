//! Replacement of keys: that of this gateway, and those of its nodes.

use std::sync::Arc;

use gateway_core::federation::message::{Envelope, Purpose, SignedSuccession, signed_bytes};
use gateway_core::federation::rotation::{Succession, TrustedKeys, succession_bytes};
use gateway_model::kinds::{Node, fingerprint_words};
use gateway_model::validated::PublicKey;
use gateway_model::{EditError, Id};
use jiff::{SignedDuration, Timestamp};

use super::Federation;
use super::apply::ACTOR;
use super::events::EventKind;
use super::identity::{Identity, RotationError, is_signed_by};
use crate::store::AuditTicket;
use crate::supervise::blocking;

impl Federation {
    /// Replaces the key of this gateway. Both keys count for the overlap. Nodes learn the new one by the pull that follows,
    /// and by a notice. Blocks on the disk.
    pub fn rotate_key(
        &self,
        ticket: AuditTicket,
        overlap: SignedDuration,
    ) -> Result<PublicKey, RotationError> {
        let key = Identity::rotate(&self.store, ticket, overlap)?.public_key();
        let message =
            format!("This gateway has a new key. Its fingerprint has the words {}.", fingerprint_words(key));
        self.events.push(self.store.clock().now(), EventKind::KeyRotated, None, String::new(), message);
        self.wake();
        Ok(key)
    }

    /// Returns the key before that of this gateway, and the end of the overlap. `None` after it. May open the secret.
    pub fn previous_key(&self) -> Option<(PublicKey, Timestamp)> {
        Identity::of(&self.store.current())?.previous(self.store.clock().now())
    }

    /// Removes the declaration of the last replacement once its overlap has ended.
    pub(super) async fn end_overlap(self: &Arc<Self>) {
        let store = self.store.clone();
        if let Err(error) = blocking(move || Identity::end_overlap(&store)).await {
            tracing::error!(%error, "failed to end the overlap of two keys");
        }
    }

    /// Follows the declaration of a node, if it is one and was not followed before. Blocks on the disk.
    pub(super) fn follow_succession(&self, signed: &SignedSuccession) {
        let Ok(declared) = Succession::parse(&signed.payload) else { return };
        let state = self.store.current();
        let is_sender = |node: &&Node| node.is_approved() && node.public_key == Some(declared.old);
        let Some(node) = state.nodes.iter().find(is_sender) else { return };
        let bytes = succession_bytes(&signed.payload);
        let is_signed = is_signed_by(declared.old, &bytes, &signed.by_old)
            && is_signed_by(declared.new, &bytes, &signed.by_new);
        if !is_signed {
            return;
        }
        let id = node.meta.id;
        match self.replace_node_key(id, &declared) {
            Ok(()) => {
                let words = fingerprint_words(declared.new);
                let message = format!(
                    "It has a new key, whose fingerprint has the words {words}. The old one counts until {}.",
                    declared.until
                );
                self.note(EventKind::KeyRotated, id, message);
            }
            Err(error) => {
                tracing::warn!(node = node.name, error, "failed to follow the new key of a node");
            }
        }
    }

    fn replace_node_key(&self, id: Id, declared: &Succession) -> Result<(), String> {
        let now = self.store.clock().now();
        let mut ticket = AuditTicket::system("rotate_node_key", "node").on(id);
        ticket.actor = ACTOR.to_owned();
        let committed = self.store.commit(ticket, |draft| {
            let node = draft.expect::<Node>(id, None)?;
            let refused = |message: String| EditError::WrongState {
                resource_type: "node",
                id,
                state: node.status.as_str(),
                message,
            };
            let keys = TrustedKeys::of(&node).filter(|_| node.is_approved());
            let keys = keys.ok_or_else(|| refused("The node is not approved.".to_owned()))?;
            let followed = keys.follow(declared, now).map_err(|error| refused(error.to_string()))?;
            let Some(TrustedKeys { current, previous }) = followed else { return Ok(()) };
            draft.update::<Node>(id, None, |node| {
                node.public_key = Some(current);
                (node.previous_key, node.previous_key_until) = previous.unzip();
            })?;
            Ok(())
        });
        committed.map_err(|error: crate::store::CommitError<EditError>| error.to_string())
    }

    /// Reports whether a node has signed a message. Follows a new key that comes with it.
    pub(super) async fn is_by_node(self: &Arc<Self>, id: Id, purpose: Purpose, envelope: &Envelope) -> bool {
        if let Some(succession) = envelope.succession.clone() {
            let federation = self.clone();
            blocking(move || federation.follow_succession(&succession)).await;
        }
        let (state, now) = (self.store.current(), self.store.clock().now());
        let key = envelope.public_key;
        let keys = state.nodes.get(id).and_then(|node| TrustedKeys::of(node));
        let bytes = signed_bytes(purpose, &[&envelope.payload]);
        keys.is_some_and(|keys| keys.accepts(key, now)) && is_signed_by(key, &bytes, &envelope.signature)
    }
}

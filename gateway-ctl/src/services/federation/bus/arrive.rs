//! Publications that arrive: verified, collected to one state of their node, and taken as a pull is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::federation::bus::inbox::Arrival;
use gateway_core::federation::bus::publication::Publication;
use gateway_core::federation::message::{Envelope, KindOffer, MessageError, Purpose, signed_bytes};
use gateway_core::federation::replica::Replica;
use gateway_core::federation::rotation::TrustedKeys;
use gateway_model::Id;
use gateway_model::bulk_edit::held;
use gateway_model::kinds::{Node, SyncKind};
use tokio::time::{Instant, timeout_at};

use crate::services::federation::Federation;
use crate::services::federation::apply::ApplyError;
use crate::services::federation::events::EventKind;
use crate::services::federation::identity::is_signed_by;
use crate::services::federation::pull::{PullError, Transport};

/// Time in which the kinds of one state have to arrive. What is missing then is pulled.
const COMPLETION: Duration = Duration::from_secs(1);

/// Reason why a publication is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Rejection {
    #[error("the node may not send this kind")]
    NotPermitted,
    #[error("it is not signed by the key of the node")]
    Signature,
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("it is of another kind than its subject")]
    Kind,
}

impl Federation {
    /// Takes a message of the hub about a kind of a node. What is not signed by the key of the node is dropped.
    pub(super) fn arrived(&self, id: Id, kind: SyncKind, message: &[u8]) {
        match self.verified(id, kind, message) {
            Ok(publication) => {
                self.bus.take(id, publication);
            }
            Err(rejection) => {
                let reason = format!("a message of the hub about {kind} is not taken: {rejection}");
                if self.bus.reject(id, &reason) {
                    tracing::warn!(node = %id, reason, "rejected a message of the hub");
                    self.note(EventKind::ResourceRejected, id, reason);
                }
            }
        }
    }

    fn verified(&self, id: Id, kind: SyncKind, message: &[u8]) -> Result<Publication, Rejection> {
        let state = self.store.current();
        let node = state.nodes.get(id).ok_or(Rejection::NotPermitted)?;
        if !node.received_kinds(&state).contains(&kind) {
            return Err(Rejection::NotPermitted);
        }
        let envelope = Envelope::parse(message)?;
        let (key, now) = (envelope.public_key, self.store.clock().now());
        let is_trusted = TrustedKeys::of(node).is_some_and(|keys| keys.accepts(key, now));
        let bytes = signed_bytes(Purpose::Publication, &[&envelope.payload]);
        if !is_trusted || !is_signed_by(key, &bytes, &envelope.signature) {
            return Err(Rejection::Signature);
        }
        let publication = Publication::parse(&envelope.payload)?;
        if publication.kind == kind { Ok(publication) } else { Err(Rejection::Kind) }
    }

    /// Applies what arrives, until it is aborted.
    pub(super) async fn take_arrivals(self: &Arc<Self>) {
        loop {
            self.bus.arrival.notified().await;
            for id in self.bus.senders() {
                self.take_arrival(id).await;
            }
        }
    }

    async fn take_arrival(self: &Arc<Self>, id: Id) {
        if self.collect(id).await {
            self.bus.arrival.notify_one();
        }
    }

    /// Waits until the messages of a node are a state of it, and takes it. Returns true if messages arrived meanwhile, which
    /// may be of other nodes.
    async fn collect(self: &Arc<Self>, id: Id) -> bool {
        let deadline = Instant::now() + COMPLETION;
        let mut has_more = false;
        loop {
            let one_at_a_time = self.pulling.lock().await;
            let state = self.store.current();
            let Some(node) = state.nodes.get(id).cloned() else {
                self.bus.forget(id);
                return has_more;
            };
            match self.bus.arrival_of(id, &node.received_kinds(&state), &node.received) {
                Arrival::Nothing => return has_more,
                Arrival::Complete { kinds, version } => {
                    self.take_state(&node, kinds, &version).await;
                    return has_more;
                }
                Arrival::Incomplete => drop(one_at_a_time),
            }
            if timeout_at(deadline, self.bus.arrival.notified()).await.is_err() {
                // What has not arrived is pulled.
                self.bus.forget(id);
                self.wake();
                return has_more;
            }
            has_more = true;
        }
    }

    async fn take_state(
        self: &Arc<Self>,
        node: &Arc<Node>,
        kinds: BTreeMap<SyncKind, KindOffer>,
        version: &str,
    ) {
        let state = self.store.current();
        let replica = Replica::new(&node.received);
        let now = self.store.clock().now();
        let changes = replica.publication(kinds, version, |kind| held(&state, node.meta.id, kind), now);
        let taken = match changes {
            Ok(changes) => self.take_changes(node, replica, changes).await,
            Err(refusal) => Err(PullError::Refused(refusal)),
        };
        match taken {
            Ok(changed) if changed.is_empty() => self.bus.forget(node.meta.id),
            Ok(changed) => {
                self.bus.count_taken();
                self.report_success(node, &changed, Transport::Bus);
            }
            // The next pull takes it.
            Err(PullError::Apply(ApplyError::Busy(_))) => self.bus.forget(node.meta.id),
            Err(error) => {
                self.bus.forget(node.meta.id);
                self.report_failure(node, &error);
            }
        }
    }
}
